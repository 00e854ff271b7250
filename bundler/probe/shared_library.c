/* The check as a shared library, for a caller that has loaded cuDNN already and wants to know
 * whether it computes in this very process. There is no child: where cuDNN ends the process, the
 * caller is ended with it, so call this in a process that may die. */
#include "stages.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
int DllMain(void *module, unsigned reason, void *reserved) {
    (void)module, (void)reason, (void)reserved;
    return 1;
}
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static void ignore_begin(StageId id) { (void)id; }
static void ignore_end(StageId id, const Stage *stage) { (void)id, (void)stage; }
static void ignore_major(int major) { (void)major; }

/* Run every stage and return the JSON document, which lives until the next call. Not for two
 * threads at once. The folder, in UTF-8, is what "inside" means. */
EXPORT const char *cudnn_check_json(const char *library_folder) {
    STATIC_TEXT(document, 1024 * 1024);
    static const Listener listener = {ignore_begin, ignore_end, ignore_major};
    static char absolute[LONGEST_PATH];
    Options options = {0};
    platform_make_absolute(library_folder, absolute, sizeof absolute);
    options.library_folder = absolute;
    text_clear(&document);
    Report *report = report_new();
    stages_run(&options, report, &listener);
    report_write_json(report, &document);
    return document.bytes;
}
