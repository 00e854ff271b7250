/* The entry point on Linux. */
#include "cudnn_check.h"

int main(int count, char **words) { return cudnn_check_main(count, words); }
