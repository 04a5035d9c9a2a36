/* header_only.c: the public headers alone, first in its file, as C17 and as C++17; linked against an installed library. */
#include <lapse_lab.h>
#include <lapse.h>

#include <string.h>

int main(void)
{
    lapse_error error;
    memset(&error, 0, sizeof error);
    return strcmp(lapse_version(), LAPSE_VERSION) == 0 && strcmp(lapse_status_name(LAPSE_OK), "ok") == 0 ? 0 : 1;
}
