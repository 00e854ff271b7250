/* The Linux side: the C library and the dynamic loader. */
#define _GNU_SOURCE
#include "platform.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

enum { MOST_ARGUMENTS = 64 };

Library platform_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_GLOBAL); }

Library platform_open_path(const char *path) { return dlopen(path, RTLD_NOW | RTLD_GLOBAL); }

Library platform_open_driver(void) { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); }

int platform_loaded(const char *name, char *path, size_t capacity) {
    struct link_map *map = 0;
    char resolved[PATH_MAX];
    void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (!library) return 0;
    Text text = {path, 0, capacity, 0};
    text_clear(&text);
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) text_add(&text, realpath(map->l_name, resolved) ? resolved : map->l_name);
    dlclose(library);
    return text.size > 0;
}

void *platform_symbol(Library library, const char *name) { return dlsym(library, name); }

const char *platform_open_error(void) {
    const char *error = dlerror();
    return error ? error : "no reason given";
}

const char *platform_own_folder(void) {
    static char folder[LONGEST_PATH];
    ssize_t size = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[size > 0 ? size : 0] = 0;
    while (size > 1 && folder[size - 1] != '/') size--;
    if (size > 1) folder[size - 1] = 0;
    return folder;
}

void platform_make_absolute(const char *path, char *absolute, size_t capacity) {
    char resolved[PATH_MAX];
    Text text = {absolute, 0, capacity, 0};
    text_clear(&text);
    if (realpath(path, resolved)) {
        text_add(&text, resolved);
        return;
    }
    if (*path != '/' && getcwd(resolved, sizeof resolved)) text_format(&text, "%s/", resolved);
    text_add(&text, path);
}

int platform_file_exists(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

void platform_each_file(const char *folder, NameSink sink, void *context) {
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) sink(context, entry->d_name);
    closedir(directory);
}

typedef struct {
    ModuleSink sink;
    void *context;
} Visit;

static int visit(struct dl_phdr_info *module, size_t size, void *context) {
    (void)size;
    const Visit *to = context;
    char path[PATH_MAX];
    if (!module->dlpi_name || !*module->dlpi_name) return 0;
    to->sink(to->context, realpath(module->dlpi_name, path) ? path : module->dlpi_name, 0);
    return 0;
}

void platform_each_module(ModuleSink sink, void *context) {
    Visit to = {sink, context};
    dl_iterate_phdr(visit, &to);
}

int platform_file_version(Library module, unsigned numbers[4]) {
    (void)module, (void)numbers;
    return 0;
}

const char *platform_variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

void platform_set_variable(const char *name, const char *value) { setenv(name, value, 1); }

void platform_write(int stream, const char *bytes, size_t size) {
    while (size) {
        ssize_t written = write(stream, bytes, size);
        if (written <= 0) return;
        bytes += written;
        size -= (size_t)written;
    }
}

static void become_child(const char *argument, char **arguments, int output) {
    char *words[MOST_ARGUMENTS + 2];
    int count = 0;
    for (; arguments[count] && count < MOST_ARGUMENTS; count++) words[count] = arguments[count];
    words[count++] = (char *)argument;
    words[count] = 0;
    dup2(output, STANDARD_OUTPUT);
    dup2(output, STANDARD_ERROR);
    close(output);
    execv("/proc/self/exe", words);
    _exit(127);
}

static long long milliseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* Hand on what the child writes until it closes its end; 0 when it takes too long. */
static int listen_until(int reading, long long end, ByteSink sink, void *context) {
    char bytes[4096];
    for (;;) {
        struct pollfd waiting = {reading, POLLIN, 0};
        long long left = end - milliseconds_now();
        if (left <= 0) return 0;
        if (poll(&waiting, 1, (int)left) <= 0) continue;
        ssize_t size = read(reading, bytes, sizeof bytes);
        if (size <= 0) return 1;
        sink(context, bytes, (size_t)size);
    }
}

ChildEnd platform_run_again(const char *argument, char **arguments, unsigned seconds, ByteSink sink, void *context) {
    ChildEnd end = {0};
    int ends[2], status = 0;
    if (pipe(ends) != 0) return end;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become_child(argument, arguments, ends[1]);
    }
    close(ends[1]);
    if (child > 0 && !listen_until(ends[0], milliseconds_now() + seconds * 1000ll, sink, context)) {
        end.is_timeout = 1;
        kill(child, SIGKILL);
    }
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child) return end;
    end.is_started = 1;
    end.is_signal = WIFSIGNALED(status);
    end.code = (unsigned)(end.is_signal ? WTERMSIG(status) : WEXITSTATUS(status));
    return end;
}

void platform_fail_silently(void) {}

void platform_wait_before_closing(void) {}

void *platform_allocate(size_t size) { return malloc(size); }

void platform_release(void *memory) { free(memory); }
