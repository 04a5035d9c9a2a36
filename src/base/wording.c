/* wording.c: writes the options of a sentence. */
#include "base/wording.h"

#include "base/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Arguments of Python that have another name than the option, or are lists. */
static const struct {
    const char *option, *argument;
    bool list;
} arguments[] = {
    {"field", "fields", true},
    {"number", "numbers", true},
    {"case", "sequences", true},
    {"split-column", "split", false},
};

static atomic_int chosen;

void lapse_wording_set(lapse_wording wording)
{
    atomic_store(&chosen, (int)wording);
}

lapse_wording lp_wording(void)
{
    return (lapse_wording)atomic_load(&chosen);
}

/* A text that is being written; what does not fit is left out. */
typedef struct writer {
    char *out;
    size_t size, used;
} writer;

static void put(writer *w, const char *text, size_t length)
{
    for (size_t i = 0; i < length && w->used + 1 < w->size; i++)
        w->out[w->used++] = text[i];
    w->out[w->used] = 0;
}

static void put_text(writer *w, const char *text)
{
    put(w, text, strlen(text));
}

/* A value of Python: a number or a placeholder as it is, everything else in quotes. */
static void put_value(writer *w, const char *text, size_t length)
{
    double number;
    bool as_it_is = lp_number_parse(text, text + length, &number) ||
                    (length > 1 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= length);
    if (!as_it_is)
        put_text(w, "\"");
    put(w, text, length);
    if (!as_it_is)
        put_text(w, "\"");
}

/* The values of a list, which commas separate. */
static void put_list(writer *w, const char *text, size_t length)
{
    put_text(w, "[");
    for (const char *end = text + length; text <= end; text++) {
        size_t part = 0;
        while (text + part < end && text[part] != ',')
            part++;
        put_value(w, text, part);
        text += part;
        put_text(w, text < end ? ", " : "");
    }
    put_text(w, "]");
}

/* The option text[0 .. length-1], which begins with two dashes, as an argument of Python. */
static void put_argument(writer *w, const char *text, size_t length, bool flag)
{
    text += 2, length -= 2;
    bool off = flag && length > 3 && memcmp(text, "no-", 3) == 0;
    if (off)
        text += 3, length -= 3;
    const char *space = memchr(text, ' ', length);
    size_t name = space ? (size_t)(space - text) : length;
    bool list = false, renamed = false;
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments && !renamed; i++) {
        renamed = strlen(arguments[i].option) == name && memcmp(arguments[i].option, text, name) == 0;
        list = renamed && arguments[i].list;
        if (renamed)
            put_text(w, arguments[i].argument);
    }
    for (size_t i = 0; i < name && !renamed; i++)
        put(w, text[i] == '-' ? "_" : text + i, 1);
    if (flag)
        put_text(w, off ? "=False" : "=True");
    if (!space)
        return;
    const char *value = space + 1;
    size_t size = length - name - 1;
    if (size > 1 && value[0] == '\'' && value[size - 1] == '\'')
        value++, size -= 2;
    put_text(w, "=");
    if (list || memchr(value, ',', size))
        put_list(w, value, size);
    else
        put_value(w, value, size);
}

char *lp_wording_write(lapse_wording wording, const char *sentence, char *out, size_t size)
{
    writer w = {out, size, 0};
    out[0] = 0;
    while (*sentence) {
        size_t plain = strcspn(sentence, "\1");
        put(&w, sentence, plain);
        sentence += plain;
        if (!*sentence)
            break;
        size_t length = strcspn(++sentence, "\2\3"); /* the end, where a sentence was cut */
        if (wording == LAPSE_WORDING_PYTHON && length > 2)
            put_argument(&w, sentence, length, sentence[length] == '\3');
        else
            put(&w, sentence, length);
        sentence += length + (sentence[length] != 0);
    }
    return out;
}

char *lp_wording_subject(const char *sentence, char *out, size_t size)
{
    size_t length = sentence[0] == '\1' && strlen(sentence) > 2 ? strcspn(sentence + 3, " \2\3") : 0;
    snprintf(out, size, "%.*s", (int)length, length ? sentence + 3 : "");
    return out;
}
