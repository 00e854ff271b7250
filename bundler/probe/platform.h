/* Everything that differs between Windows and Linux. All text is UTF-8. */
#ifndef PLATFORM_H
#define PLATFORM_H

#include <stddef.h>

#if defined(_WIN32)
#define SEPARATOR "\\"
#define CUDNN_PREFIX "cudnn"
#define SEARCH_PATH "PATH"
#else
#define SEPARATOR "/"
#define CUDNN_PREFIX "libcudnn"
#define SEARCH_PATH "LD_LIBRARY_PATH"
#endif

enum { LONGEST_PATH = 4096, STANDARD_OUTPUT = 1, STANDARD_ERROR = 2 };

typedef void *Library;

/* How a child ended. */
typedef struct {
    int is_started;
    int is_signal;
    int is_timeout; /* it was ended because it took too long */
    unsigned code; /* exit code, all 32 bits, or the number of the signal */
} ChildEnd;

typedef void (*ByteSink)(void *context, const char *bytes, size_t size);
typedef void (*NameSink)(void *context, const char *name);
typedef void (*ModuleSink)(void *context, const char *path, Library module);

/* The library that an application would get by asking for this name, nothing else set up. */
Library platform_open(const char *name);
/* A library by its full path, its own folder searched for what it imports. */
Library platform_open_path(const char *path);
/* The NVIDIA driver, from the system and from nowhere else. */
Library platform_open_driver(void);
void *platform_symbol(Library library, const char *name);
/* The file that answers to a name because it is loaded already; 0 where there is none. */
int platform_loaded(const char *name, char *path, size_t capacity);
/* Why the last opening failed, in words, such as "error 126: not found". */
const char *platform_open_error(void);

const char *platform_own_folder(void);
void platform_make_absolute(const char *path, char *absolute, size_t capacity);
int platform_file_exists(const char *path);
void platform_each_file(const char *folder, NameSink sink, void *context);
void platform_each_module(ModuleSink sink, void *context);
/* The four numbers of a module's own version resource; 0 where it has none. */
int platform_file_version(Library module, unsigned numbers[4]);
/* A variable's value, or an empty string; it lives until the next call. */
const char *platform_variable(const char *name);
void platform_set_variable(const char *name, const char *value);

void platform_write(int stream, const char *bytes, size_t size);
/* Run this program again with one more argument; its output and its errors go to the sink. It is
 * ended when it has not come to an end after so many seconds. */
ChildEnd platform_run_again(const char *argument, char **arguments, unsigned seconds, ByteSink sink, void *context);
/* Keep the system from showing a box that waits for somebody to press a button. */
void platform_fail_silently(void);
/* Where a double click has opened a window for this program alone: keep it open. */
void platform_wait_before_closing(void);

void *platform_allocate(size_t size);
void platform_release(void *memory);

#endif
