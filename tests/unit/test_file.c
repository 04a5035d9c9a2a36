/* test_file.c: files mapped, and files written aside and renamed: whole at commit, or not at all. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "lapse_lab.h"

static char folder[200];
static bool named; /* temporary files have names: always, or because the file system has no unnamed files */
static bool always_named;

void lp_writer_name_always(bool always)
{
    always_named = always;
}

/* That of a file system without unnamed files where all are named (-Wl,--wrap, cmake/tests.cmake). */
int __real_lp_system_open_unnamed(const char *path, mode_t mode);
int __wrap_lp_system_open_unnamed(const char *path, mode_t mode);

int __wrap_lp_system_open_unnamed(const char *path, mode_t mode)
{
    if (!always_named)
        return __real_lp_system_open_unnamed(path, mode);
    errno = EOPNOTSUPP;
    return -1;
}

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/lapse_test_file_XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    int unnamed = open(folder, O_WRONLY | O_TMPFILE, 0600);
    named = unnamed < 0;
    if (unnamed >= 0)
        close(unnamed);
    lp_writer_name_always(false);
    return 0;
}

static int make_folder_for_names(void **state)
{
    int status = make_folder(state);
    lp_writer_name_always(true);
    named = true;
    return status;
}

/* How many files the folder holds. */
static int count_files(void)
{
    int count = 0;
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(listing);
    return count;
}

static const char *in_folder(const char *name)
{
    static char path[500];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int remove_folder(void **state)
{
    (void)state;
    remove(in_folder("out"));
    remove(in_folder("taken"));
    return rmdir(folder);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_holds(const char *path, const char *text)
{
    lp_map map;
    assert_int_equal(lp_map_open(&map, path, NULL), LAPSE_OK);
    assert_int_equal(map.size, strlen(text));
    if (map.size)
        assert_memory_equal(map.data, text, map.size);
    lp_map_close(&map);
}

static void test_map_reads_a_file(void **state)
{
    (void)state;
    put(in_folder("out"), "user,time\n");
    assert_holds(in_folder("out"), "user,time\n");
    put(in_folder("out"), "");
    lp_map map;
    assert_int_equal(lp_map_open(&map, in_folder("out"), NULL), LAPSE_OK);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    lp_map_close(&map);
    lp_map_close(&map);
    unlink(in_folder("out"));
}

static void test_map_refuses_what_is_no_file(void **state)
{
    (void)state;
    lp_map map;
    lapse_error error;
    assert_int_equal(lp_map_open(&map, in_folder("absent"), &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot open: No such file or directory");
    assert_string_equal(error.file, in_folder("absent"));
    assert_int_equal(lp_map_open(&map, folder, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "this is not a regular file");
    assert_null(map.data);
}

static void test_writer_appears_at_commit(void **state)
{
    (void)state;
    const char *path = in_folder("out");
    put(path, "old");
    lp_writer writer;
    assert_int_equal(lp_writer_open(&writer, path, NULL), LAPSE_OK);
    assert_int_equal(lp_writer_add(&writer, "new", 3, NULL), LAPSE_OK);
    assert_int_equal(lp_writer_print(&writer, NULL, "%d,%s\n", 12, "x"), LAPSE_OK);
    assert_int_equal(writer.written, 8);
    assert_holds(path, "old");
    assert_int_equal(count_files(), named ? 2 : 1);
    assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
    assert_holds(path, "new12,x\n");
    assert_int_equal(count_files(), 1);
    lp_writer_abandon(&writer);
    assert_holds(path, "new12,x\n");
    unlink(path);
}

static void test_writer_abandoned_leaves_nothing(void **state)
{
    (void)state;
    lp_writer writer;
    put(in_folder("out"), "old");
    assert_int_equal(lp_writer_open(&writer, in_folder("out"), NULL), LAPSE_OK);
    assert_int_equal(lp_writer_add(&writer, "new", 3, NULL), LAPSE_OK);
    lp_writer_abandon(&writer);
    assert_holds(in_folder("out"), "old");
    assert_int_equal(count_files(), 1);
    unlink(in_folder("out"));
    lp_writer never = {0};
    lp_writer_abandon(&never);
}

/* Pieces of all sizes around the writer's own buffer of 1 MiB must come out in order. */
static void test_writer_keeps_the_order_of_large_pieces(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, (1 << 20) - 1, 1, 1 << 20, 3, (1 << 20) + 1, 70000, 0, 1 << 20};
    const char *path = in_folder("out");
    char *piece = lp_alloc((1 << 20) + 1, 1);
    size_t total = 0;
    lp_writer writer;
    assert_int_equal(lp_writer_open(&writer, path, NULL), LAPSE_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(piece, (int)('a' + i), sizes[i]);
        assert_int_equal(lp_writer_add(&writer, piece, sizes[i], NULL), LAPSE_OK);
        total += sizes[i];
    }
    assert_int_equal(writer.written, total);
    assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
    lp_map map;
    assert_int_equal(lp_map_open(&map, path, NULL), LAPSE_OK);
    assert_int_equal(map.size, total);
    const char *at = map.data;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(piece, (int)('a' + i), sizes[i]);
        assert_int_equal(memcmp(at, piece, sizes[i]), 0);
        at += sizes[i];
    }
    lp_map_close(&map);
    lp_free(piece);
    unlink(path);
}

static void test_writer_pads(void **state)
{
    (void)state;
    lp_writer writer;
    assert_int_equal(lp_writer_open(&writer, in_folder("out"), NULL), LAPSE_OK);
    assert_int_equal(lp_writer_pad(&writer, 64, NULL), LAPSE_OK);
    assert_int_equal(writer.written, 0);
    lp_writer_add(&writer, "x", 1, NULL);
    assert_int_equal(lp_writer_pad(&writer, 64, NULL), LAPSE_OK);
    assert_int_equal(writer.written, 64);
    lp_writer_add(&writer, "x", 1, NULL);
    assert_int_equal(lp_writer_pad(&writer, 4096, NULL), LAPSE_OK);
    assert_int_equal(writer.written, 4096);
    assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
    lp_map map;
    assert_int_equal(lp_map_open(&map, in_folder("out"), NULL), LAPSE_OK);
    assert_int_equal(map.size, 4096);
    for (size_t i = 0; i < map.size; i++)
        assert_int_equal(map.data[i], i == 0 || i == 64 ? 'x' : 0);
    lp_map_close(&map);
    unlink(in_folder("out"));
}

static void test_writer_refuses_an_endless_line(void **state)
{
    (void)state;
    lp_writer writer;
    lapse_error error;
    assert_int_equal(lp_writer_open(&writer, in_folder("out"), NULL), LAPSE_OK);
    assert_int_equal(lp_writer_print(&writer, &error, "%1023d", 1), LAPSE_OK);
    assert_int_equal(lp_writer_print(&writer, &error, "%1024d", 1), LAPSE_ERROR_INTERNAL);
    assert_string_equal(error.message, "a line exceeds 1024 bytes");
    lp_writer_abandon(&writer);
}

static void test_writer_cannot_open(void **state)
{
    (void)state;
    lp_writer writer;
    lapse_error error;
    const char *path = in_folder("absent/out");
    assert_int_equal(lp_writer_open(&writer, path, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No such file or directory");
    assert_string_equal(error.file, path);
    lp_writer_abandon(&writer);
}

static void test_writer_out_of_memory(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        lp_writer writer;
        lapse_error error;
        lp_memory_fail_at(n);
        assert_int_equal(lp_writer_open(&writer, in_folder("out"), &error), LAPSE_ERROR_MEMORY);
        assert_string_equal(error.message, "out of memory: writing a file needs 1.0 MB");
        lp_writer_abandon(&writer);
    }
    lp_memory_fail_at(0);
    assert_int_equal(count_files(), 0);
}

static void test_writer_cannot_replace_a_folder(void **state)
{
    (void)state;
    lp_writer writer;
    lapse_error error;
    assert_int_equal(mkdir(in_folder("taken"), 0700), 0);
    assert_int_equal(lp_writer_open(&writer, in_folder("taken"), &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: Is a directory");
    assert_int_equal(count_files(), 1);
    rmdir(in_folder("taken"));
}

/* The folder appears only after the writer was opened: the rename fails, and nothing is left beside it. */
static void test_writer_finds_its_place_taken(void **state)
{
    (void)state;
    lp_writer writer;
    lapse_error error;
    assert_int_equal(lp_writer_open(&writer, in_folder("taken"), NULL), LAPSE_OK);
    assert_int_equal(mkdir(in_folder("taken"), 0700), 0);
    assert_int_equal(lp_writer_commit(&writer, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: Is a directory");
    assert_int_equal(count_files(), 1);
    rmdir(in_folder("taken"));
}

static void test_writer_follows_a_link(void **state)
{
    (void)state;
    put(in_folder("out"), "old");
    assert_int_equal(symlink("out", in_folder("taken")), 0);
    lp_writer writer;
    assert_int_equal(lp_writer_open(&writer, in_folder("taken"), NULL), LAPSE_OK);
    assert_int_equal(lp_writer_add(&writer, "new", 3, NULL), LAPSE_OK);
    assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
    assert_holds(in_folder("out"), "new");
    struct stat found;
    assert_int_equal(lstat(in_folder("taken"), &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    assert_int_equal(count_files(), 2);
    unlink(in_folder("out"));
    unlink(in_folder("taken"));
}

/* A pipe must not be replaced by a file of its name. */
static void test_writer_to_a_pipe(void **state)
{
    (void)state;
    const char *path = in_folder("out");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    for (int commit = 0; commit < 2; commit++) {
        lp_writer writer;
        assert_int_equal(lp_writer_open(&writer, path, NULL), LAPSE_OK);
        assert_int_equal(count_files(), 1);
        assert_int_equal(lp_writer_add(&writer, "text", 4, NULL), LAPSE_OK);
        if (commit)
            assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
        else
            lp_writer_abandon(&writer);
        char text[8];
        assert_int_equal(read(reader, text, sizeof text), commit ? 4 : 0);
        struct stat found;
        assert_int_equal(stat(path, &found), 0);
        assert_true(S_ISFIFO(found.st_mode));
    }
    close(reader);
    unlink(path);
}

/* A file that may not grow further stands for a full disk: the old file must survive, and nothing lie beside it. */
static void test_writer_on_a_full_disk(void **state)
{
    (void)state;
    put(in_folder("out"), "old");
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 5000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    char *piece = lp_alloc(2 << 20, 1);
    for (int large = 0; large < 2; large++) {
        lp_writer writer;
        lapse_error error = {0};
        assert_int_equal(lp_writer_open(&writer, in_folder("out"), NULL), LAPSE_OK);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        /* A small piece waits for commit to fail; a large one fails at once. */
        lapse_status added = lp_writer_add(&writer, piece, large ? 2 << 20 : 6000, &error);
        lapse_status status = large ? added : lp_writer_commit(&writer, &error);
        lp_writer_abandon(&writer);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(added, large ? LAPSE_ERROR_FILE : LAPSE_OK);
        assert_int_equal(status, LAPSE_ERROR_FILE);
        assert_string_equal(error.message, "cannot write: File too large");
        assert_string_equal(error.file, in_folder("out"));
        assert_holds(in_folder("out"), "old");
        assert_int_equal(count_files(), 1);
    }
    lp_free(piece);
    signal(SIGXFSZ, handler);
    unlink(in_folder("out"));
}

/* Standard output is written as it comes; here it is a device that is always full. */
static void test_writer_to_a_full_standard_output(void **state)
{
    (void)state;
    int device = open("/dev/full", O_WRONLY);
    if (device < 0) {
        print_message("skipped: there is no /dev/full\n");
        skip();
    }
    lapse_error error = {0};
    lp_writer writer;
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(device, STDOUT_FILENO);
    lapse_status opened = lp_writer_open(&writer, "-", &error);
    lapse_status added = lp_writer_add(&writer, "text", 4, &error);
    lapse_status committed = lp_writer_commit(&writer, &error);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(device);
    assert_int_equal(opened, LAPSE_OK);
    assert_int_equal(added, LAPSE_OK);
    assert_int_equal(committed, LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No space left on device");
    assert_string_equal(error.file, "-");
}

/* The public function replaces a file as a whole, and leaves it and the folder alone where it cannot. */
static void test_file_write(void **state)
{
    (void)state;
    char path[300], missing[310];
    lapse_error error;
    snprintf(path, sizeof path, "%s/out", folder);
    snprintf(missing, sizeof missing, "%s/none/out", folder);
    put(path, "old");
    assert_int_equal(lapse_file_write(path, "new text", 8, &error), LAPSE_OK);
    assert_holds(path, "new text");
    assert_int_equal(lapse_file_write(path, "", 0, &error), LAPSE_OK);
    assert_holds(path, "");
    assert_int_equal(lapse_file_write(missing, "x", 1, &error), LAPSE_ERROR_FILE);
    assert_int_equal(lapse_file_write("/dev/full", "x", 1, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No space left on device");
    assert_int_equal(count_files(), 1);
    unlink(path);
}

/* The writer never opens a file that exists: a regular file, a link and a FIFO at PATH.tmp stay as they are. */
static void test_writer_touches_no_other_file(void **state)
{
    (void)state;
    char path[300], aside[310], victim[310];
    snprintf(path, sizeof path, "%s/shared", folder);
    snprintf(aside, sizeof aside, "%s.tmp", path);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    for (int type = 0; type < 3; type++) {
        lp_writer writer;
        struct stat before, after;
        put(victim, "precious");
        if (type == 0)
            put(aside, "of another program");
        else
            assert_int_equal(type == 1 ? symlink("victim", aside) : mkfifo(aside, 0600), 0);
        assert_int_equal(lstat(aside, &before), 0);
        assert_int_equal(lp_writer_open(&writer, path, NULL), LAPSE_OK);
        assert_int_equal(lp_writer_add(&writer, "mine", 4, NULL), LAPSE_OK);
        assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
        assert_holds(path, "mine");
        assert_holds(victim, "precious");
        assert_int_equal(lstat(aside, &after), 0);
        assert_true(before.st_ino == after.st_ino && before.st_mode == after.st_mode &&
                    before.st_size == after.st_size);
        assert_int_equal(lstat(path, &after), 0);
        assert_true(S_ISREG(after.st_mode));
        assert_int_equal(count_files(), 3);
        unlink(path);
        unlink(aside);
        unlink(victim);
    }
}

/* Writers of one path do not wait for each other and share no file; the last commit remains. */
static void test_writers_at_once(void **state)
{
    (void)state;
    lp_writer first, second, third;
    char path[300];
    snprintf(path, sizeof path, "%s/out", folder);
    assert_int_equal(lp_writer_open(&first, path, NULL), LAPSE_OK);
    assert_int_equal(lp_writer_open(&second, path, NULL), LAPSE_OK);
    assert_int_equal(lp_writer_open(&third, path, NULL), LAPSE_OK);
    assert_int_equal(count_files(), named ? 3 : 0);
    assert_int_equal(lp_writer_add(&first, "first", 5, NULL), LAPSE_OK);
    assert_int_equal(lp_writer_add(&second, "second", 6, NULL), LAPSE_OK);
    assert_int_equal(lp_writer_commit(&second, NULL), LAPSE_OK);
    assert_holds(path, "second");
    assert_int_equal(lp_writer_commit(&first, NULL), LAPSE_OK);
    assert_holds(path, "first");
    lp_writer_abandon(&third);
    assert_holds(path, "first");
    assert_int_equal(count_files(), 1);
    unlink(path);
}

static void test_writer_refuses_a_dangling_link(void **state)
{
    (void)state;
    lp_writer writer;
    lapse_error error;
    struct stat found;
    assert_int_equal(symlink("absent", in_folder("taken")), 0);
    assert_int_equal(lp_writer_open(&writer, in_folder("taken"), &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: this is a symbolic link to a file that does not exist");
    lp_writer_abandon(&writer);
    assert_int_equal(lstat(in_folder("taken"), &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    assert_int_equal(count_files(), 1);
    unlink(in_folder("taken"));
}

/* A name of NAME_MAX bytes leaves no space for a suffix. */
static void test_writer_of_a_long_name(void **state)
{
    (void)state;
    char name[256];
    lp_writer writer;
    memset(name, 'n', 255);
    name[255] = 0;
    assert_int_equal(lp_writer_open(&writer, in_folder(name), NULL), LAPSE_OK);
    assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
    assert_holds(in_folder(name), "");
    assert_int_equal(count_files(), 1);
    unlink(in_folder(name));
}

/* Without a writer at its other end, opening a FIFO must not wait. */
static void test_map_refuses_a_pipe(void **state)
{
    (void)state;
    lp_map map;
    lapse_error error;
    assert_int_equal(mkfifo(in_folder("out"), 0600), 0);
    alarm(30);
    assert_int_equal(lp_map_open(&map, in_folder("out"), &error), LAPSE_ERROR_FILE);
    alarm(0);
    assert_string_equal(error.message, "this is not a regular file");
    unlink(in_folder("out"));
}

static void test_file_versions(void **state)
{
    (void)state;
    lp_writer writer;
    const lp_file_version none = lp_file_version_of(in_folder("absent"));
    assert_true(lp_file_version_equal(none, (lp_file_version){0}));
    put(in_folder("out"), "old");
    lp_file_version before = lp_file_version_of(in_folder("out"));
    assert_true(lp_file_version_equal(before, lp_file_version_of(in_folder("out"))));
    assert_false(lp_file_version_equal(before, none));
    assert_int_equal(lp_writer_open(&writer, in_folder("out"), NULL), LAPSE_OK);
    assert_int_equal(lp_writer_commit(&writer, NULL), LAPSE_OK);
    assert_false(lp_file_version_equal(before, lp_file_version_of(in_folder("out"))));
    unlink(in_folder("out"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_write),
        cmocka_unit_test(test_writer_touches_no_other_file),
        cmocka_unit_test(test_writers_at_once),
        cmocka_unit_test(test_writer_refuses_a_dangling_link),
        cmocka_unit_test(test_writer_of_a_long_name),
        cmocka_unit_test(test_map_refuses_a_pipe),
        cmocka_unit_test(test_file_versions),
        cmocka_unit_test(test_map_reads_a_file),
        cmocka_unit_test(test_map_refuses_what_is_no_file),
        cmocka_unit_test(test_writer_appears_at_commit),
        cmocka_unit_test(test_writer_abandoned_leaves_nothing),
        cmocka_unit_test(test_writer_keeps_the_order_of_large_pieces),
        cmocka_unit_test(test_writer_pads),
        cmocka_unit_test(test_writer_refuses_an_endless_line),
        cmocka_unit_test(test_writer_cannot_open),
        cmocka_unit_test(test_writer_out_of_memory),
        cmocka_unit_test(test_writer_cannot_replace_a_folder),
        cmocka_unit_test(test_writer_finds_its_place_taken),
        cmocka_unit_test(test_writer_follows_a_link),
        cmocka_unit_test(test_writer_to_a_pipe),
        cmocka_unit_test(test_writer_on_a_full_disk),
        cmocka_unit_test(test_writer_to_a_full_standard_output),
    };
    int failed = cmocka_run_group_tests_name("unnamed temporary files", tests, make_folder, remove_folder);
    return failed + cmocka_run_group_tests_name("named temporary files", tests, make_folder_for_names, remove_folder);
}
