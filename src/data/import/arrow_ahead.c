/* arrow_ahead.c: the memory of a batch of rows. */
#include "data/import/arrow_ahead.h"

static int64_t offset_at(const lp_arrow_values *values, int64_t i)
{
    int32_t narrow;
    int64_t wide;
    const uint8_t *at = values->data + (values->offset + i) * values->type.size;
    if (values->type.size == 4) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

int lp_arrow_ranges(const lp_arrow_values *values, int64_t first, int64_t count, lp_arrow_range ranges[LP_ARROW_RANGES])
{
    const char *data = (const char *)values->data;
    int64_t size = values->type.size;
    if (!data || size == 0 || count == 0)
        return 0;
    data += (values->offset + first) * size;
    ranges[0] = (lp_arrow_range){data, data + count * size};
    if (values->type.kind != LP_ARROW_TEXT || values->terms)
        return 1;
    /* The offsets are not checked yet. */
    int64_t begin = offset_at(values, first), end = offset_at(values, first + count);
    if (begin < 0 || begin > end || end > values->text_size)
        return 1;
    ranges[1] = (lp_arrow_range){values->text + begin, values->text + end};
    return 2;
}

void lp_arrow_ahead_begin(lp_arrow_ahead *ahead, int64_t steps)
{
    enum { LINE = 64 };
    int64_t lines = 0;
    for (int r = 0; r < ahead->count; r++)
        lines += (ahead->ranges[r].end - ahead->ranges[r].begin) / LINE + 1;
    ahead->current = 0;
    ahead->lines = (int)(lines / (steps + 1) + 1);
}
