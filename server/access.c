/* access.c: see access.h. */
#include "access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SHORTEST = 16 };

bool srv_access_read(srv_access *a, const char *path)
{
    static const char *const names[] = {"", "read", "write", "admin"};
    char line[512], name[16], token[256];
    FILE *file = fopen(path, "r");
    const char *wrong = file ? NULL : strerror(errno);
    int number = 0;
    memset(a, 0, sizeof *a);
    while (!wrong && fgets(line, sizeof line, file)) {
        int right = SRV_ADMIN, fields = sscanf(line, "%15s %255s", name, token);
        number++;
        if (fields < 1 || name[0] == '#')
            continue;
        while (right > 0 && strcmp(name, names[right]) != 0)
            right--;
        if (fields < 2 || right == 0)
            wrong = "a line is read, write or admin, and a token";
        else if (strlen(token) < SHORTEST)
            wrong = "a token has at least 16 characters";
        else if (a->count == (int)(sizeof a->tokens / sizeof *a->tokens))
            wrong = "too many tokens";
        else {
            a->tokens[a->count].right = (srv_right)right;
            strncpy(a->tokens[a->count++].token, token, sizeof token - 1);
        }
    }
    if (file)
        fclose(file);
    if (!wrong && a->count == 0)
        wrong = "the file has no token";
    if (wrong)
        fprintf(stderr, "lapse: --token-file %s, line %d: %s\n", path, number, wrong);
    return wrong == NULL;
}

srv_right srv_access_right(const srv_access *a, const char *header)
{
    char given[256] = "";
    srv_right right = SRV_OPEN;
    if (a->count == 0)
        return SRV_ADMIN;
    if (header && strncmp(header, "Bearer ", 7) == 0 && strlen(header + 7) < sizeof given)
        strncpy(given, header + 7, sizeof given - 1);
    for (int i = 0; i < a->count; i++) { /* all of them, all bytes */
        unsigned char differs = 0;
        for (size_t j = 0; j < sizeof given; j++)
            differs |= (unsigned char)(given[j] ^ a->tokens[i].token[j]);
        if (!differs && a->tokens[i].right > right)
            right = a->tokens[i].right;
    }
    return right;
}
