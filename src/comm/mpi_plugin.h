/* mpi_plugin.h: the entry of the MPI plugin. */
#ifndef LP_MPI_PLUGIN_H
#define LP_MPI_PLUGIN_H

#include "lapse_lab.h"

/* Changes with the structs in lapse_lab.h that library and plugin share. */
enum { LP_MPI_VERSION = 1 };

/* Initializes MPI, unless the program has, and fills the table for its processes, and the name of the MPI library. False: it cannot, as
 * `why` says. */
typedef bool (*lp_mpi_open_function)(int version, lapse_comm_functions *functions, char *library, size_t library_size, char *why,
                                     size_t size);

#endif
