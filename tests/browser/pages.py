"""pages.py: makes reports and checks them in headless Chromium. run.sh calls it; it needs the standard library alone.

    pages.py LAPSE BROWSER EMPTY-FOLDER

A script is added to a copy of each report. It looks for script errors, parts wider than the page, figures that are not drawn, texts
outside of their figure, and sliders that change nothing, and sends its findings to the page around it, whose frame has the width of
a desktop or of a phone.
"""
import html
import json
import os
import re
import subprocess
import sys

WIDTHS = (1280, 390)

LISTEN = """<script>var failures = []; window.onerror = function (text) { failures.push(String(text)); };</script>"""

PROBE = """<script>
(function () {
  function inside(svg) {
    var frame = svg.getBoundingClientRect(), out = [];
    svg.querySelectorAll('text').forEach(function (text) {
      var box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        out.push(text.textContent);
    });
    return out;
  }
  function slide(box) {
    var slider = box.querySelector('input'), before = box.textContent;
    slider.value = slider.max;
    slider.dispatchEvent(new Event('input'));
    return before !== box.textContent && box.querySelectorAll('.bar').length > 0;
  }
  var found = {failures: failures, width: innerWidth, needs: document.documentElement.scrollWidth, figures: [], sliders: [], wide: []};
  document.querySelectorAll('figure').forEach(function (figure) {
    var svg = figure.querySelector('svg'), missing = figure.querySelector('.missing');
    found.figures.push({id: figure.id, missing: missing ? missing.textContent : '',
      marks: svg ? svg.querySelectorAll('path,circle,rect').length : 0, width: svg ? svg.getBoundingClientRect().width : 0,
      caption: figure.querySelector('figcaption') ? figure.querySelector('figcaption').textContent : '',
      csv: missing ? '' : data.csv[figure.id], outside: svg ? inside(svg) : []});
  });
  document.querySelectorAll('.case').forEach(function (box) { found.sliders.push(slide(box)); });
  document.querySelectorAll('body *').forEach(function (part) {
    if (part.getBoundingClientRect().right > innerWidth + 1 && !part.closest('svg')) found.wide.push(part.tagName + ' ' + part.className);
  });
  found.failures = failures;
  parent.postMessage(JSON.stringify(found), '*');
})();
</script>"""

AROUND = """<!doctype html><meta charset="utf-8"><body><pre id="found">nothing</pre>
<script>window.onmessage = function (event) { document.getElementById('found').textContent = event.data; };</script>
<iframe src="%s" style="width:%dpx;height:900px;border:0"></iframe>"""

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

    def probe(self, report, width):
        """What the script found in the report."""
        with open(self.path(report), encoding="utf-8") as file:
            page = file.read()
        require(not re.search(r"""(src|href)=["']?(https?:)?//""", page), "the report refers to the network")
        page = page.replace("<head>", "<head>" + LISTEN, 1).replace("</body>\n</html>", PROBE + "</body>\n</html>")
        with open(self.path("probed.html"), "w", encoding="utf-8") as file:
            file.write(page)
        with open(self.path("around.html"), "w", encoding="utf-8") as file:
            file.write(AROUND % ("probed.html", width))
        command = [self.browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   f"--user-data-dir={self.path('profile')}", "--window-size=1400,1000", "--virtual-time-budget=10000",
                   "--dump-dom", "file://" + self.path("around.html")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
        require(found and found[1] != "nothing", f"the page did not report: {done.stderr.strip()[-500:]}")
        return json.loads(html.unescape(found[1]))

    def good(self, report, width, wanted, sliders):
        found = self.probe(report, width)
        require(found["width"] == width, f"the page is {found['width']} px wide, not {width}")
        require(not found["failures"], f"script errors: {found['failures']}")
        require(found["needs"] <= width and not found["wide"], f"wider than the page: {found['needs']} px, {found['wide'][:5]}")
        drawn = {figure["id"] for figure in found["figures"] if not figure["missing"]}
        require(wanted <= drawn, f"figures that are missing: {sorted(wanted - drawn)}")
        for figure in found["figures"]:
            if figure["missing"]:
                continue
            require(figure["marks"] > 0 and figure["width"] > 200, f"{figure['id']} is not drawn: {figure}")
            require(figure["caption"] and figure["csv"].count("\n") > 1, f"{figure['id']} has no caption or no numbers")
            require(not figure["outside"], f"{figure['id']} has texts outside: {figure['outside'][:3]}")
        require(found["sliders"] == [True] * sliders, f"sliders that work: {found['sliders']}")


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
    small = ["--dims", "8", "--context", "16", "--epochs", "2", "--threads", "1", "--no-eval", "--checkpoint", "none"]
    for name in ("shop", "hostile"):
        suite.lapse("import", name + ".csv", "-o", name + ".lapse", "--event", "item", "--action", "action", "--field", "category")
    suite.lapse("train", "shop.lapse", "-o", "shop.st", "--log", "run.jsonl", *small)
    suite.lapse("train", "hostile.lapse", "-o", "hostile.st", "--encoding", "bochner-normal", *small)
    suite.lapse("train", "shop.lapse", "-o", "recommend.st", "--task", "recommend", *small)
    suite.lapse("train", "shop.lapse", "-o", "lstm.st", "--model", "lstm", "--when", *small)
    suite.lapse("inspect", "shop.st", "shop.lapse", "-o", "shop.html", "--log", "run.jsonl", "--split", "all")
    suite.lapse("inspect", "hostile.st", "hostile.lapse", "-o", "hostile.html", "--split", "all", "--cases", "400")
    suite.lapse("inspect", "recommend.st", "shop.lapse", "-o", "recommend.html", "--split", "all")
    suite.lapse("inspect", "lstm.st", "shop.lapse", "-o", "lstm.html", "--cases", "300")
    suite.lapse("inspect", "shop.st", "-o", "model.html")


ENCODING = {"spectrum", "kernel", "kernel-periods", "kernel-pairs", "phi"}
EVERY = ENCODING | {"curve-loss", "reliability", "attention-action", "attention-category", "attention-event",
                    "attention-future-action", "influence-soon", "case-1-weights", "case-1-predictions", "case-3-weights",
                    "success-by-gap", "success-by-length"}


def main(tool, browser, folder):
    suite = Suite(tool, browser, folder)
    prepare(suite)
    for width in WIDTHS:
        suite.check(f"a classifier, {width} px", suite.good, "shop.html", width, EVERY | {"confusion", "scores-event-accuracy"}, 3)
        suite.check(f"hostile names, {width} px", suite.good, "hostile.html", width, EVERY | {"frequency-density"}, 3)
    suite.check("a recommender", suite.good, "recommend.html", 390, EVERY, 3)
    suite.check("a model of times, without attention", suite.good, "lstm.html", 390,
                {"influence-soon", "reliability-time", "case-1-predictions", "case-1-survival"}, 3)
    suite.check("a model alone", suite.good, "model.html", 390, ENCODING | {"curve-loss"}, 0)
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
