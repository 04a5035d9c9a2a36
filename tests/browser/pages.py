"""pages.py: makes reports and counts their faults in headless Chromium. run.sh calls it; it needs the standard library alone.

    pages.py LAPSE BROWSER EMPTY-FOLDER

A script is added to a copy of each report, opens what is folded, and measures: script errors, parts wider than the page, figures that
are not drawn, texts that overlap, leave their figure, have equal names on one axis, a contrast below 4.5:1 to what is behind them or
fewer than 10 pixels, blank parts of cards and columns, sliders without a name or an effect, and a first screen without its three
figures. It sends its findings to the page around it, whose frames are as wide as a desktop and a phone.
"""
import html
import json
import os
import re
import subprocess
import sys

WIDTHS = (1400, 390)
LEAD = ("scores", "influence", "case-1-predictions")  # within the first 900 px of a desktop
BLANK = 0.15  # of the area of columns, at most

LISTEN = """<script>var failures = []; window.onerror = function (text) { failures.push(String(text)); };</script>"""

PROBE = r"""<script>
(function () {
  const faults = failures, figures = [], lead = {};
  const fault = (kind, where, what) => faults.push(kind + ': ' + where + ': ' + what);
  const channel = c => (c /= 255) <= 0.03928 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4);
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const rgba = text => { const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number); return n.length < 4 ? n.concat(1) : n; };
  const over = (top, part, below) => [0, 1, 2].map(i => top[i] * part + below[i] * (1 - part));
  // What is painted behind the middle of a text: backgrounds of HTML, fills of SVG.
  function behind(text) {
    const box = text.getBoundingClientRect(), stack = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    let colour = matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0] : [255, 255, 255];
    for (const part of stack.reverse()) {
      if (part === text || part.tagName === 'text') continue;
      const style = getComputedStyle(part), svg = part.ownerSVGElement;
      const paint = rgba(svg ? (style.fill === 'none' ? 'rgba(0,0,0,0)' : style.fill) : style.backgroundColor);
      if (svg && part.tagName === 'line') continue;
      colour = over(paint, paint[3] * (svg ? Number(style.fillOpacity) : 1), colour);
    }
    return colour;
  }
  function contrast(text) {
    const style = getComputedStyle(text), ink = rgba(text.tagName === 'text' ? style.fill : style.color), a = light(ink), b = light(behind(text));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }
  // The corners of a text, which may be slanted, without the space above and below its letters.
  function corners(text) {
    const box = text.getBBox(), m = text.getScreenCTM(), top = box.y + 0.2 * box.height, bottom = box.y + 0.8 * box.height;
    return [[box.x + 1, top], [box.x + box.width - 1, top], [box.x + box.width - 1, bottom], [box.x + 1, bottom]]
      .map(p => [m.a * p[0] + m.c * p[1] + m.e, m.b * p[0] + m.d * p[1] + m.f]);
  }
  function apart(one, two) {
    for (const shape of [one, two])
      for (let i = 0; i < 4; i++) {
        const next = shape[(i + 1) % 4], normal = [next[1] - shape[i][1], shape[i][0] - next[0]];
        const along = s => s.map(p => p[0] * normal[0] + p[1] * normal[1]);
        if (Math.max(...along(one)) <= Math.min(...along(two)) || Math.max(...along(two)) <= Math.min(...along(one))) return true;
      }
    return false;
  }
  function check_texts(figure, svg) {
    const frame = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')].filter(t => t.textContent), shapes = texts.map(corners);
    texts.forEach((text, i) => {
      const box = text.getBoundingClientRect(), size = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        fault('outside', figure.id, text.textContent);
      if (!text.parentNode.getAttribute('transform') && size < 10) fault('small', figure.id, text.textContent + ' ' + size);
      if (contrast(text) < 4.5) fault('contrast', figure.id, text.textContent + ' ' + contrast(text).toFixed(2));
      for (let k = 0; k < i; k++)
        if (!apart(shapes[i], shapes[k])) fault('overlap', figure.id, text.textContent + ' and ' + texts[k].textContent);
    });
    const names = texts.filter(t => t.classList.contains('right') && !/^[-\d.]/.test(t.textContent)).map(t => t.textContent + t.parentNode.tagName);
    // Two events of a case may have the same name and time.
    if (new Set(names).size < names.length && !figure.id.endsWith('-weights')) fault('equal names', figure.id, names.join('|'));
  }
  function check_slider(box) {
    const slider = box.querySelector('input'), before = box.textContent, lines = [...document.querySelectorAll('.cursor[data-case="' + box.dataset.case + '"]')];
    const from = lines.map(line => line.getAttribute('x1'));
    if (slider.labels.length !== 1 || !slider.labels[0].textContent || !slider.getAttribute('aria-valuetext')) fault('slider', box.dataset.case, 'no name');
    slider.value = 0;
    slider.dispatchEvent(new Event('input'));
    if (before === box.textContent || !lines.length || lines.some((line, i) => line.getAttribute('x1') === from[i])) fault('slider', box.dataset.case, 'no effect');
  }
  const folds = [...document.querySelectorAll('details')];
  document.querySelectorAll('figure').forEach(figure => {
    const first = figure.closest('details') ? '' : figure.id.replace(/^scores.*/, 'scores');
    if (first && !(first in lead)) lead[first] = figure.querySelector('svg').getBoundingClientRect().bottom;
  });
  folds.forEach(fold => { fold.open = true; });
  document.querySelectorAll('figure').forEach(figure => {
    const svg = figure.querySelector('svg'), caption = figure.querySelector('figcaption'), frame = figure.getBoundingClientRect();
    figures.push(figure.id);
    if (!svg || !svg.querySelectorAll('path,circle,rect').length || svg.getBoundingClientRect().width < 200) fault('empty', figure.id, 'not drawn');
    if (!caption || !caption.textContent || !figure.querySelector('h3').textContent) fault('empty', figure.id, 'no caption or title');
    if (figure.id !== 'phi' && !(data.csv[figure.id] || '').includes('\n')) fault('empty', figure.id, 'no numbers');
    check_texts(figure, svg);
    const bottom = Math.max(...[...figure.children].map(part => part.getBoundingClientRect().bottom));
    if (frame.bottom - bottom > 24) fault('blank', figure.id, frame.bottom - bottom);
  });
  document.querySelectorAll('h1,h2,h3,p,a,summary,td,th,li,figcaption,label,b,.missing').forEach(text => {
    if (text.textContent && contrast(text) < 4.5) fault('contrast', text.tagName, text.textContent.slice(0, 40) + ' ' + contrast(text).toFixed(2));
    if (text.textContent && parseFloat(getComputedStyle(text).fontSize) < 12) fault('small', text.tagName, text.textContent);
  });
  let blank = 0;
  document.querySelectorAll('.columns').forEach(columns => {
    const all = columns.getBoundingClientRect(), cards = [...columns.querySelectorAll('figure')];
    const used = cards.reduce((sum, card) => sum + (card.offsetWidth + 16) * (card.offsetHeight + 16), 0);
    if (!columns.closest('details')) blank = 1 - used / ((all.width + 16) * all.height);
  });
  const sliders = document.querySelectorAll('.case');
  sliders.forEach(check_slider);
  document.querySelectorAll('body *').forEach(part => {
    if (part.getBoundingClientRect().right > innerWidth + 1 && !part.closest('svg')) fault('wide', part.tagName, part.className);
  });
  if (document.documentElement.scrollWidth > innerWidth) fault('wide', 'page', document.documentElement.scrollWidth);
  parent.postMessage({width: innerWidth, dark: matchMedia('(prefers-color-scheme: dark)').matches, faults, figures, sliders: sliders.length, lead, blank,
                      height: document.querySelector('main').offsetHeight, heading: document.querySelector('h1').textContent}, '*');
})();
</script>"""

AROUND = """<!doctype html><meta charset="utf-8"><body><pre id="found">nothing</pre>
<script>const found = []; window.onmessage = event => {
  found.push(event.data);
  if (found.length === %d) document.getElementById('found').textContent = JSON.stringify(found);
};</script>
%s"""

HOSTILE = ["</script><script>failures.push('run')</script>", "\"><img src=x onerror=failures.push(1)>", "a'b\"c\\", "<!--", "&amp;",
           "\u2028 line", "a name that is much longer than any legend or axis of a figure can ever show in one line"]


def require(condition, message):
    if not condition:
        raise ValueError(message)


class Suite:
    def __init__(self, tool, browser, folder):
        self.tool, self.browser, self.folder = tool, browser, folder
        self.passed = self.failed = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def lapse(self, *arguments):
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, cwd=self.folder)
        require(done.returncode == 0, f"lapse {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")

    def check(self, name, test, *arguments):
        try:
            test(*arguments)
            self.passed += 1
        except Exception as error:  # the other checks still run
            self.failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}")

    def probe(self, report, dark):
        """What the script found in the report, at each width."""
        with open(self.path(report), encoding="utf-8") as file:
            page = file.read()
        require(not re.search(r"""(src|href)=["']?(https?:)?//""", page), "the report refers to the network")
        page = page.replace("<head>", "<head>" + LISTEN, 1).replace("</body>\n</html>", PROBE + "</body>\n</html>")
        with open(self.path("probed.html"), "w", encoding="utf-8") as file:
            file.write(page)
        frames = "".join(f'<iframe src="probed.html" style="width:{width}px;height:20000px;border:0"></iframe>' for width in WIDTHS)
        with open(self.path("around.html"), "w", encoding="utf-8") as file:
            file.write(AROUND % (len(WIDTHS), frames))
        command = [self.browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   f"--user-data-dir={self.path('profile')}", "--window-size=1400,1000", "--virtual-time-budget=20000",
                   f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom", "file://" + self.path("around.html")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
        require(found and found[1] != "nothing", f"the page did not report: {done.stderr.strip()[-500:]}")
        return sorted(json.loads(html.unescape(found[1])), key=lambda view: -view["width"])

    def good(self, report, dark, wanted, sliders, lead=LEAD, most_blank=BLANK):
        views = self.probe(report, dark)
        require([view["width"] for view in views] == list(WIDTHS), "the frames have other widths")
        for view in views:
            where = f"{view['width']} px"
            require(view["dark"] == dark, f"{where}: the page is {'light' if dark else 'dark'}")
            require(not view["faults"], f"{where}: {len(view['faults'])} faults: " + "; ".join(view["faults"][:8]))
            require(wanted <= set(view["figures"]), f"{where}: figures that are missing: {sorted(wanted - set(view['figures']))}")
            require(view["sliders"] == sliders, f"{where}: {view['sliders']} sliders")
            require(view["blank"] <= most_blank, f"{where}: {view['blank']:.0%} of the columns is blank")
        first = views[0]["lead"]
        require(list(lead) == [name for name in lead if first.get(name, 1e9) <= 900], f"below the first 900 px: {first}")
        print(f"{report}, {'dark' if dark else 'light'}: height {views[0]['height']} and {views[1]['height']} px, "
              f"blank {views[0]['blank']:.0%} and {views[1]['blank']:.0%}; {views[0]['heading']}")


def prepare(suite):
    """The shop, and the shop with names that are hostile to HTML, scripts and SVG."""
    suite.lapse("simulate", "--preset", "shop", "--sequences", "60", "--days", "90", "--seed", "3", "-o", "shop.csv")
    with open(suite.path("shop.csv"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    items = sorted({line.split(",")[2] for line in lines[1:]})
    names = dict(zip(items, HOSTILE + items))
    with open(suite.path("hostile.csv"), "w", encoding="utf-8") as file:
        file.write(lines[0] + "\n")
        for line in lines[1:]:
            fields = line.split(",")
            fields[2] = '"' + names[fields[2]].replace('"', '""') + '"'
            fields[0] = '"' + fields[0] + '<b>"'
            file.write(",".join(fields) + "\n")
    small = ["--dims", "16", "--blocks", "2", "--context", "16", "--epochs", "4", "--learning-rate", "0.005", "--threads", "1",
             "--checkpoint", "none"]
    for name in ("shop", "hostile"):
        suite.lapse("import", name + ".csv", "-o", name + ".lapse", "--event", "item", "--action", "action", "--field", "category")
    suite.lapse("import", "shop.csv", "-o", "joined.lapse", "--event", "action,item")
    suite.lapse("simulate", "--preset", "catalogue", "--items", "300", "--sequences", "150", "--seed", "3", "-o", "items.csv")
    suite.lapse("import", "items.csv", "-o", "items.lapse")
    suite.lapse("train", "joined.lapse", "-o", "classify.st", "--log", "run.jsonl", *small)
    suite.lapse("train", "joined.lapse", "-o", "when.st", "--when", *small)
    suite.lapse("train", "items.lapse", "-o", "recommend.st", "--task", "recommend", *small)
    suite.lapse("train", "joined.lapse", "-o", "lstm.st", "--model", "lstm", "--dims", "16", "--epochs", "2", "--threads", "1")
    suite.lapse("train", "joined.lapse", "-o", "markov.st", "--model", "markov")
    suite.lapse("train", "shop.lapse", "-o", "fields.st", "--predict", "both", *small)
    suite.lapse("train", "hostile.lapse", "-o", "hostile.st", "--encoding", "bochner-normal", *small)
    suite.lapse("inspect", "classify.st", "joined.lapse", "-o", "classify.html", "--log", "run.jsonl")
    for name in ("when", "lstm", "markov"):
        suite.lapse("inspect", name + ".st", "joined.lapse", "-o", name + ".html")
    suite.lapse("inspect", "recommend.st", "items.lapse", "-o", "recommend.html")
    suite.lapse("inspect", "fields.st", "shop.lapse", "-o", "fields.html")
    suite.lapse("inspect", "hostile.st", "hostile.lapse", "-o", "hostile.html", "--split", "all", "--cases", "400")
    suite.lapse("inspect", "classify.st", "-o", "model.html")


ERRORS = {"influence", "case-1-predictions", "success-by-gap", "success-by-length", "reliability"}
ENCODING = {"spectrum", "kernel", "phi", "training"}
CASES = {"case-1-weights", "case-2-predictions", "case-3-weights"}


def main(tool, browser, folder):
    suite = Suite(tool, browser, folder)
    prepare(suite)
    for dark in (False, True):
        shade = "dark" if dark else "light"
        suite.check(f"a classifier, {shade}", suite.good, "classify.html", dark, ERRORS | ENCODING | CASES | {"confusion", "scores-event-accuracy"}, 3)
        suite.check(f"with times, {shade}", suite.good, "when.html", dark, ERRORS | ENCODING | CASES | {"reliability-time", "case-1-survival"}, 3)
        suite.check(f"a recommender, {shade}", suite.good, "recommend.html", dark, ERRORS | ENCODING | {"scores-event-ndcg-10"}, 3)
        suite.check(f"a model blind to time, {shade}", suite.good, "lstm.html", dark, ERRORS | {"training"}, 0)
        suite.check(f"a baseline, {shade}", suite.good, "markov.html", dark, ERRORS, 0)
        suite.check(f"fields and actions, {shade}", suite.good, "fields.html", dark, ERRORS | ENCODING | {"scores-action-accuracy", "attention-action"}, 3)
    suite.check("hostile names", suite.good, "hostile.html", False, ERRORS | ENCODING | CASES, 3, LEAD, 0.25)
    suite.check("a model alone", suite.good, "model.html", False, ENCODING | {"scores-event-accuracy"}, 0, ("scores",), 0.5)
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
