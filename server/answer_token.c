/* answer_token.c: see answer_token.h. */
#include "answer_token.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

typedef struct head {
    uint32_t check; /* of all that follows */
    uint8_t version, route, model_count, reserved;
    int64_t position;
    double now;
    uint64_t found;
} head;

static uint32_t checksum(const char *data, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)data[i]) * 16777619u;
    return hash;
}

void srv_token_write(srv_text *out, const srv_token *t)
{
    srv_text raw = {0};
    head h = {0, 1, (uint8_t)t->route, (uint8_t)t->model_count, 0, t->position, t->now, t->found};
    srv_text_bytes(&raw, &h, sizeof h);
    srv_text_bytes(&raw, t->models, sizeof *t->models * (size_t)t->model_count);
    srv_text_bytes(&raw, t->body, t->body_size);
    if (raw.failed) {
        out->failed = true;
        srv_text_clear(&raw);
        return;
    }
    h.check = checksum(raw.data + sizeof h.check, raw.size - sizeof h.check);
    memcpy(raw.data, &h.check, sizeof h.check);
    for (size_t i = 0; i < raw.size; i += 3) {
        unsigned char in[3] = {0};
        size_t size = raw.size - i < 3 ? raw.size - i : 3;
        memcpy(in, raw.data + i, size);
        char four[] = {digits[in[0] >> 2], digits[(in[0] & 3) << 4 | in[1] >> 4],
                       digits[(in[1] & 15) << 2 | in[2] >> 6], digits[in[2] & 63]};
        srv_text_bytes(out, four, size + 1);
    }
    srv_text_clear(&raw);
}

bool srv_token_read(const char *text, srv_token *t, srv_text *bytes)
{
    uint32_t word = 0;
    int bits = 0;
    head h;
    for (; *text; text++) {
        const char *digit = strchr(digits, *text);
        if (!digit)
            return false;
        word = word << 6 | (uint32_t)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            char byte = (char)(word >> (bits -= 8));
            srv_text_bytes(bytes, &byte, 1);
        }
    }
    if (bytes->failed || bytes->size < sizeof h)
        return false;
    memcpy(&h, bytes->data, sizeof h);
    size_t models = sizeof *t->models * h.model_count;
    if (h.version != 1 || h.model_count > SRV_TOKEN_MODELS || bytes->size < sizeof h + models ||
        h.check != checksum(bytes->data + sizeof h.check, bytes->size - sizeof h.check))
        return false;
    *t = (srv_token){.route = h.route,
                     .position = h.position,
                     .now = h.now,
                     .found = h.found,
                     .model_count = h.model_count,
                     .body = bytes->data + sizeof h + models,
                     .body_size = bytes->size - sizeof h - models};
    memcpy(t->models, bytes->data + sizeof h, models);
    return true;
}
