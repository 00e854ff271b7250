/* Convolutions of small whole numbers, so that every right answer is exact in fp32, TF32 and fp16. */
#ifndef CONVOLUTION_H
#define CONVOLUTION_H

#include "cudnn_api.h"
#include "stages.h"

/* Stride 1, a square filter of odd size, and the padding that keeps height and width. */
typedef struct {
    int n, c, h, w, k, size;
} Shape;

enum { INPUT_SEED = 1, FILTER_SEED = 2 };

/* A convolution set up on the GPU: input, filter and output, each with its form and memory. */
typedef struct {
    Check *check;
    Stage *stage;
    const CudnnApi *api;
    const Gpu *gpu;
    Shape shape;
    int type; /* CUDNN_FLOAT or CUDNN_HALF */
    Descriptor input_form, filter_form, output_form, convolution;
    DeviceMemory input, filter, output, workspace;
    size_t workspace_bytes;
    int algorithm;
} Problem;

size_t shape_inputs(const Shape *shape);
size_t shape_filters(const Shape *shape);
size_t shape_outputs(const Shape *shape);

/* Each returns 0 after it has said in the stage why it failed. */
int problem_prepare(Check *check, StageId id, Problem *problem);
int problem_open(Problem *problem);
/* Upload input and filter. */
int problem_upload(Problem *problem);
int problem_choose(Problem *problem, Direction direction);
int problem_run(Problem *problem, Direction direction);
void problem_close(Problem *problem);

/* Whether a call worked; if not, the stage fails with a sentence that begins with `what`. */
int gpu_worked(Problem *problem, const char *what, int error);
int cudnn_worked(Problem *problem, const char *what, int status);
int host_worked(Problem *problem, const void *memory);

/* Whether cuDNN's algorithm computes through a transform that rounds (FFT, Winograd). */
int algorithm_rounds(Direction direction, int algorithm);

/* Upload whole numbers from -2 to 2, the same in every run. */
int upload_numbers(Problem *problem, DeviceMemory to, const signed char *numbers, size_t count);
void make_numbers(signed char *numbers, size_t count, unsigned seed);

/* The plain kernel: computes a second output with no cuDNN, and counts where the two differ. */
typedef struct {
    GpuObject module, convolve, count;
    DeviceMemory output;
} PlainKernel;

/* Set the large shape up for both: a problem ready to run, and the kernel with its own output. */
int plain_open(Problem *problem, PlainKernel *kernel);
void plain_close(Problem *problem, PlainKernel *kernel);
int plain_convolve(Problem *problem, const PlainKernel *kernel);
int plain_count(Problem *problem, const PlainKernel *kernel, float tolerance, unsigned *mismatches);

#endif
