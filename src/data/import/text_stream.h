/* text_stream.h: the text of a source as UTF-8, one JSON object per line if it is JSON: other encodings are converted, and the
 * objects of an array, or of an array in an object, and objects over several lines become lines. Lines of logs and of printed tables
 * become rows (line_shape.h). */
#ifndef LP_TEXT_STREAM_H
#define LP_TEXT_STREAM_H

#include "data/import/line_shape.h"
#include "data/import/source.h"

typedef enum lp_text_encoding {
    LP_UTF_8,
    LP_UTF_16LE,
    LP_UTF_16BE,
    LP_WINDOWS_1250,
    LP_WINDOWS_1251,
    LP_WINDOWS_1252,
    LP_LATIN_1,
    LP_TEXT_ENCODINGS
} lp_text_encoding;

/* "utf-8", "utf-16le", "utf-16be", "windows-1250", "windows-1251", "windows-1252", "latin-1". */
extern const char *const lp_text_encoding_names[];

typedef struct lp_text_stream {
    lp_source *source; /* the caller's */
    lp_text_encoding encoding;
    char *raw; /* owned; bytes of the source that are not decoded: raw + at .. raw + at + left */
    size_t at, left;
    bool ended;  /* no more bytes than these */
    bool direct; /* the text is that of the source */

    char *
        text; /* owned; decoded text that is not handed out: text + text_at .. text + text_at + text_left; NULL if direct */
    size_t text_at, text_left;
    bool objects; /* objects become lines; the rest is about them */
    bool array;   /* they are in an array, which ends the text */
    bool done, in_element, in_string, escaped, owes_line;
    int depth;
    lp_line_shape shape; /* what lines are, where they are not objects */
    lp_buffer line;      /* lines in their new form, of which those before line_at are handed out */
    size_t line_at;
} lp_text_stream;

/* Reads the beginning of the source. encoding: a name of an encoding, or NULL to find it. preferred: the one of a text that is
 * not Unicode, or NULL. logs: find the shape of lines. */
lapse_status lp_text_open(lp_text_stream *stream, lp_source *source, const char *encoding, const char *preferred,
                          bool logs, lapse_error *error);

/* Reads up to `size` bytes of text; *count is smaller only at the end. */
lapse_status lp_text_read(lp_text_stream *stream, char *into, size_t size, size_t *count, lapse_error *error);

/* Safe on {0} and when called twice. */
void lp_text_close(lp_text_stream *stream);

#endif
