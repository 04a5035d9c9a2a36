/* comm_open.c: detects a launcher and loads the MPI plugin. */
#include "base/plugin_file.h"
#include "comm/comm.h"
#include "comm/mpi_plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* What launchers set. MPICH's and Intel's sets the second, srun the last; SLURM_NTASKS is set in a batch script too, which is one process. */
static const struct launcher {
    const char *size, *rank;
    const char *plugin; /* of its MPI library; NULL: any */
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "liblapse_mpi_openmpi.so"},
    {"PMI_SIZE", "PMI_RANK", "liblapse_mpi_mpich.so"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL},
};

static bool number_of(const char *variable, int *number)
{
    const char *text = getenv(variable);
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    *number = (int)value;
    return text && *text && !*end && value >= 0 && value < 1 << 24;
}

static const struct launcher *find_launcher(int *rank, int *size)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (number_of(launchers[i].size, size) && number_of(launchers[i].rank, rank) && *size > 1)
            return &launchers[i];
    *rank = 0;
    *size = 1;
    return NULL;
}

bool lapse_comm_launched(int *rank, int *size)
{
    return find_launcher(rank, size) != NULL;
}

static const char BUILT[] = "Lapse builds it where mpicc (of Open MPI or MPICH) is on the PATH";

/* The plugin for the launcher's MPI library, or the one for the mpicc of the build. */
static void *open_plugin(const struct launcher *launcher, char *why, size_t size)
{
    const char *named = getenv("LAPSE_MPI_PLUGIN");
    void *handle = NULL;
    if (launcher->plugin && !(named && *named))
        handle = lp_plugin_open(launcher->plugin, "LAPSE_MPI_PLUGIN", BUILT, why, size);
    if (handle)
        return handle;
    *why = '\0';
    return lp_plugin_open("liblapse_mpi.so", "LAPSE_MPI_PLUGIN", BUILT, why, size);
}

lapse_status lapse_comm_open(lapse_comm **comm, lapse_error *error)
{
    LP_REQUIRE(error, comm);
    int rank, size;
    const struct launcher *launcher = find_launcher(&rank, &size);
    *comm = NULL;
    if (!launcher)
        return LAPSE_OK;
    char why[512] = "", library[128] = "";
    void *handle = open_plugin(launcher, why, sizeof why);
    lp_mpi_open_function open = handle ? (lp_mpi_open_function)dlsym(handle, "lp_mpi_open") : NULL;
    if (handle && !open)
        snprintf(why, sizeof why, "the plugin has no entry 'lp_mpi_open'");
    lapse_comm_functions functions = {0};
    if (!open || !open(LP_MPI_VERSION, &functions, library, sizeof library, why, sizeof why))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the launcher started %d processes (%s), but MPI cannot be used: %s. For one process, start lapse "
                       "without the launcher",
                       size, launcher->size, why);
    if (functions.size != size) {
        functions.close(functions.context);
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the launcher started %d processes (%s), but the MPI library sees %d: the launcher is not that of %s, "
                       "for which the plugin was built. Use its mpirun, or set LAPSE_MPI_PLUGIN to a plugin built with "
                       "the mpicc of this one",
                       size, launcher->size, functions.size, library);
    }
    return lapse_comm_new(&functions, comm, error);
}
