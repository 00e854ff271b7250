/* The plain kernel of plain_kernel.ptx, carried as text and compiled by the driver. */
#include "convolution.h"

static const char SOURCE[] = {
#embed "plain_kernel.ptx"
    , 0};

enum { BLOCK = 256 };

static const Shape LARGE_SHAPE = {32, 3, 224, 224, 64, 3};

static int load_kernel(Problem *problem, PlainKernel *kernel) {
    const Gpu *gpu = problem->gpu;
    return gpu_worked(problem, "compiling the plain kernel", gpu->module_load(&kernel->module, SOURCE)) &&
           gpu_worked(problem, "finding the plain kernel", gpu->module_function(&kernel->convolve, kernel->module, "plain_convolution")) &&
           gpu_worked(problem, "finding the comparison", gpu->module_function(&kernel->count, kernel->module, "count_mismatches"));
}

int plain_open(Problem *problem, PlainKernel *kernel) {
    problem->shape = LARGE_SHAPE;
    problem->type = CUDNN_FLOAT;
    size_t bytes = shape_outputs(&problem->shape) * sizeof(float);
    return problem_open(problem) && problem_upload(problem) && load_kernel(problem, kernel) &&
           gpu_worked(problem, "taking 392 MB of GPU memory for the plain kernel's output", problem->gpu->allocate(&kernel->output, bytes)) &&
           problem_choose(problem, FORWARD);
}

void plain_close(Problem *problem, PlainKernel *kernel) {
    if (kernel->output) problem->gpu->release(kernel->output);
    problem_close(problem);
}

static int launch(Problem *problem, GpuObject function, unsigned total, void **parameters) {
    unsigned blocks = (total + BLOCK - 1) / BLOCK;
    return gpu_worked(problem, "starting the plain kernel",
                      problem->gpu->launch(function, blocks, 1, 1, BLOCK, 1, 1, 0, 0, parameters, 0));
}

int plain_convolve(Problem *problem, const PlainKernel *kernel) {
    Shape shape = problem->shape;
    unsigned total = (unsigned)shape_outputs(&shape);
    void *parameters[] = {&problem->input, &problem->filter, (void *)&kernel->output, &shape.c, &shape.h, &shape.w, &shape.k, &shape.size, &total};
    return launch(problem, kernel->convolve, total, parameters);
}

int plain_count(Problem *problem, const PlainKernel *kernel, float tolerance, unsigned *mismatches) {
    const Gpu *gpu = problem->gpu;
    DeviceMemory count = 0;
    unsigned total = (unsigned)shape_outputs(&problem->shape);
    void *parameters[] = {&problem->output, (void *)&kernel->output, &count, &tolerance, &total};
    int worked = gpu_worked(problem, "taking GPU memory", gpu->allocate(&count, sizeof *mismatches)) &&
                 gpu_worked(problem, "clearing GPU memory", gpu->fill(count, 0, sizeof *mismatches)) &&
                 launch(problem, kernel->count, total, parameters) &&
                 gpu_worked(problem, "comparing", gpu->synchronize()) &&
                 gpu_worked(problem, "copying from the GPU", gpu->download(mismatches, count, sizeof *mismatches));
    if (count) gpu->release(count);
    return worked;
}
