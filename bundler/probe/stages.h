/* The stages themselves, run in a process that cuDNN may end at any moment. */
#ifndef STAGES_H
#define STAGES_H

#include "gpu.h"
#include "report.h"

typedef struct {
    const char *library_folder; /* opened and pre-loaded from there; null: as an application would */
    const char *expected_folder; /* where an application elsewhere must get its libraries from; or null */
    int spoils; /* make one expected value wrong, to see that the check can fail */
} Options;

/* What one stage learns and the next ones need. */
typedef struct {
    const Options *options;
    Report *report;
    const char *folder; /* what "inside" means */
    Library cuda;
    Gpu gpu;
    int cuda_version; /* 12040 is CUDA 12.4, the newest that the driver supports */
    int has_device;
    int compute_capability; /* 90 is 9.0 */
    Library cudnn;
    unsigned long long cudnn_version;
    unsigned long long cudart_version;
    void *handle;
} Check;

/* Told when a stage begins and when it, or what it says of another one, has changed. */
typedef struct {
    void (*begins)(StageId id);
    void (*ended)(StageId id, const Stage *stage);
    void (*major_known)(int major);
} Listener;

void stages_run(const Options *options, Report *report, const Listener *listener);

/* One function a chapter; each fills its own stage. */
void check_driver(Check *check);
void check_device(Check *check);
void check_library(Check *check);
void check_modules(Check *check); /* again after every call that may have loaded more */
void check_versions(Check *check);
void check_engines(Check *check);
void check_create(Check *check);
void check_convolution(Check *check);
void check_benchmark(Check *check);

/* The driver and the GPU judged again, once cuDNN has said what it was made for. The number is
 * what cudnnGetMaxDeviceVersion answers, or 0. */
void judge_driver(Check *check);
void judge_device(Check *check, unsigned long long newest_asked);

/* Open what cuDNN will ask for; 0 after saying in the stage what is missing. */
int open_needs(Check *check, Stage *stage);
/* The same for one library, by its file name. */
int open_need_named(Check *check, const char *name);

void stage_passed(Stage *stage);
void stage_not_run(Stage *stage, const char *reason);
/* Failed: the caller adds to stage->reason and stage->remedy. */
void stage_failed(Stage *stage);

/* What to do about a status, by the words that cuDNN has for it. */
const char *remedy_of(const char *status_words);

/* Whether a path lies in a folder or below it. */
int path_is_inside(const char *path, const char *folder);
const char *path_name(const char *path);
/* Add to the reason which libraries of the set are not in the folder: Windows names only those
 * that import one, and cuDNN 9 none. */
void name_absent(Check *check, Stage *stage);
/* Whether a file is one of cuDNN's own libraries, by its name; this program's own library is not. */
int name_is_cudnn(const char *name);
/* A library's file name: ("", 8) is cudnn64_8.dll or libcudnn.so.8, ("ops_infer", 8) a companion's. */
const char *library_name(const char *part, int major);

#endif
