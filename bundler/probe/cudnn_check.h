/* The check as its callers see it: the program's `main`, and the shared library's one function. */
#ifndef CUDNN_CHECK_H
#define CUDNN_CHECK_H

/* Run the command line; return the exit code: 0 passed, 2 wrong usage, 5 failed, 6 no GPU where
 * one is required. */
int cudnn_check_main(int count, char **words);

#endif
