/* file_kind.c: one table of file kinds: magic number, name, and how to read such a file instead. */
#include "data/import/file_kind.h"

#include <string.h>

#define FROM_PYTHON \
    "read it in Python (pandas or pyarrow) and import it with lapse.Dataset.from_arrow, or save it as CSV"
#define FROM_PARQUET                                                                                                  \
    "pipe it through DuckDB: duckdb -csv -c \"FROM 'FILE'\" | lapse import - -o DATASET; or in Python: "               \
    "lapse.Dataset.from_arrow(pyarrow.parquet.read_table('FILE'), sequence=..., time=..., event=...).save(DATASET)"
#define THROUGH_PIPE(command) "decompress it into a pipe: " command " FILE | lapse import - -o DATASET"

typedef struct file_kind {
    const char *magic;
    size_t size, offset;
    bool binary; /* the magic number may begin a text: the file must also have a NUL byte */
    const char *name, *advice;
} file_kind;

static const file_kind kinds[] = {
    {"PAR1", 4, 0, true, "a Parquet file", FROM_PARQUET},
    {"ARROW1", 6, 0, true, "an Arrow (Feather) file", FROM_PYTHON},
    {"FEA1", 4, 0, true, "a Feather file", FROM_PYTHON},
    {"\xFF\xFF\xFF\xFF", 4, 0, true, "an Arrow stream", FROM_PYTHON},
    {"ORC", 3, 0, true, "an ORC file", FROM_PYTHON},
    {"Obj\x01", 4, 0, false, "an Avro file", FROM_PYTHON},
    {"\x89HDF\r\n\x1A\n", 8, 0, false, "an HDF5 file", FROM_PYTHON},
    {"SQLite format 3", 16, 0, false, "an SQLite database",
     "export a query into a pipe: sqlite3 -header -csv FILE 'SELECT ...' | lapse import - -o DATASET"},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8, 0, false, "an Excel workbook (xls)", FROM_PYTHON},
    {"PK\x03\x04", 4, 0, false, "a zip file", THROUGH_PIPE("unzip -p")},
    {"\x28\xB5\x2F\xFD", 4, 0, false, "a file compressed with zstd", THROUGH_PIPE("zstd -dc")},
    {"1AY&SY", 6, 4, false, "a file compressed with bzip2", THROUGH_PIPE("bzip2 -dc")},
    {"\xFD"
     "7zXZ",
     6, 0, false, "a file compressed with xz", THROUGH_PIPE("xz -dc")},
    {"\x04\x22\x4D\x18", 4, 0, false, "a file compressed with lz4", THROUGH_PIPE("lz4 -dc")},
    {"7z\xBC\xAF\x27\x1C", 6, 0, false, "a 7z archive", THROUGH_PIPE("7z x -so")},
    {"ustar", 5, 257, true, "a tar archive", "extract it first: tar xf FILE"},
    {"\x93NUMPY", 6, 0, false, "a NumPy file", FROM_PYTHON},
    {"%PDF-", 5, 0, false, "a PDF document", "import the table that it was made from"},
    {"\x89LAPSE\r\n", 8, 0, false, "a dataset of Lapse", "use it as it is: it needs no import"},
};

/* Zip archives whose first entry has one of these names are workbooks. */
static bool is_workbook(const char *text, size_t size)
{
    static const char *const names[] = {"[Content_Types].xml", "_rels/", "xl/", "docProps/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (size >= 30 + strlen(names[i]) && memcmp(text + 30, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool is_kind(const file_kind *kind, const char *text, size_t size)
{
    return size >= kind->offset + kind->size && memcmp(text + kind->offset, kind->magic, kind->size) == 0 &&
           (!kind->binary || memchr(text, 0, size));
}

/* The protocols 2 to 5 of pickle begin with a byte and their number, and from 4 on with a frame. */
static bool is_pickle(const char *text, size_t size)
{
    return size > 2 && (unsigned char)text[0] == 0x80 && text[1] >= 2 && text[1] <= 5;
}

static lapse_status fail_kind(const char *file, lapse_error *error, const char *name, const char *advice)
{
    return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0, "this is %s, not CSV or JSON Lines: %s", name, advice);
}

static const char *skip_blanks(const char *text, const char *end)
{
    while (text < end && strchr(" \t\r\n", *text) && *text)
        text++;
    return text;
}

bool lp_is_json_lines(const char *text, size_t size)
{
    const char *first = skip_blanks(text, text + size);
    return first < text + size && *first == '{';
}

lapse_status lp_file_kind_check(const char *text, size_t size, const char *file, lapse_error *error)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!is_kind(&kinds[i], text, size))
            continue;
        if (strcmp(kinds[i].magic, "PK\x03\x04") == 0 && is_workbook(text, size))
            return fail_kind(file, error, "an Excel workbook (xlsx)", FROM_PYTHON);
        return fail_kind(file, error, kinds[i].name, kinds[i].advice);
    }
    if (is_pickle(text, size))
        return fail_kind(file, error, "a Python pickle", FROM_PYTHON);
    const char *end = text + size, *first = skip_blanks(text, end);
    if (first < end && *first == '[') {
        const char *second = skip_blanks(first + 1, end);
        if (second < end && (*second == '[' || *second == ']'))
            return fail_kind(file, error, "a JSON array without objects",
                             "its elements must be objects, one for each event");
    }
    return LAPSE_OK;
}
