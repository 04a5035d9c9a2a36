/* comm_mpi.c: a communicator over MPI: the plugin liblapse_mpi.so. MPI moves bytes, and adds nothing.
 *
 * All calls are nonblocking and polled, so that a deadline holds. The poll sleeps after a while: ranks that share a core wait without taking it.
 */
#include "comm/mpi_plugin.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FAILURE_TAG = 0, TAGS = 16000, TEXT = 400 };
#define HURRY 0.3 /* seconds until the end of a process that is about to be ended */

#ifndef LP_MPI_PIECE
#define LP_MPI_PIECE (1 << 30) /* bytes: a count of MPI is an int, so a larger message has a type of pieces */
#endif

typedef struct mpi_comm {
    MPI_Comm world;
    int rank, size;
    bool finalizes;        /* this plugin initialized MPI */
    MPI_Request *requests; /* [2 x size] */
    MPI_Request told;      /* a failure of another rank */
    char received[TEXT], sent[TEXT];
    bool *alive; /* [size]: ranks that wait for others, like this one */
} mpi_comm;

static mpi_comm state;

static bool failed(int code, char *why, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return false;
    MPI_Error_string(code, text, &length);
    snprintf(why, size, "MPI: %.300s", text);
    return true;
}

/* Sends (or receives) one message in the background. */
static int begin(mpi_comm *comm, bool send, const lapse_message *message, int rank, int tag, MPI_Request *request)
{
    MPI_Datatype type = MPI_BYTE;
    int count = (int)message->size;
    if (message->size > LP_MPI_PIECE) {
        MPI_Datatype piece, parts[2];
        int lengths[] = {(int)(message->size / LP_MPI_PIECE), (int)(message->size % LP_MPI_PIECE)};
        MPI_Aint offsets[] = {0, (MPI_Aint)lengths[0] * LP_MPI_PIECE};
        MPI_Type_contiguous(LP_MPI_PIECE, MPI_BYTE, &piece);
        parts[0] = piece;
        parts[1] = MPI_BYTE;
        MPI_Type_create_struct(2, lengths, offsets, parts, &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&piece);
        count = 1;
    }
    int code = send ? MPI_Isend(message->data, count, type, rank, tag, comm->world, request)
                    : MPI_Irecv(message->data, count, type, rank, tag, comm->world, request);
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    return code;
}

/* Waits longer from turn to turn: first not at all, then for other processes, then asleep. */
static void pause_turn(int turn)
{
    enum { SPINS = 2000, YIELDS = 4000 };
    if (turn < SPINS)
        return;
    struct timespec nap = {0, turn < YIELDS ? 0 : 50000};
    nanosleep(&nap, NULL);
}

/* Takes a message about a failure, if there is one. An empty text is of a rank that waits like this one: it is alive. */
static bool take_told(mpi_comm *comm, bool *waits)
{
    int there = 0;
    MPI_Status status;
    if (MPI_Test(&comm->told, &there, &status) != MPI_SUCCESS || !there)
        return false;
    if (*comm->received)
        return true;
    comm->alive[status.MPI_SOURCE] = true;
    *waits = true;
    MPI_Irecv(comm->received, TEXT, MPI_BYTE, MPI_ANY_SOURCE, FAILURE_TAG, comm->world, &comm->told);
    return false;
}

static lapse_exchange_status wait_all(mpi_comm *comm, const lapse_exchange *exchange)
{
    double end = MPI_Wtime() + exchange->seconds;
    bool waits = false, hurried = false;
    for (int turn = 0;; turn++) {
        int done = 0;
        if (failed(MPI_Testall(2 * comm->size, comm->requests, &done, MPI_STATUSES_IGNORE), exchange->why,
                   exchange->why_size))
            return LAPSE_EXCHANGE_FAILED;
        if (done)
            return LAPSE_EXCHANGE_DONE;
        if (turn % 64 == 63 && take_told(comm, &waits)) {
            snprintf(exchange->why, exchange->why_size, "%s", comm->received);
            return LAPSE_EXCHANGE_TOLD;
        }
        if (*exchange->hurry && !hurried) {
            hurried = true;
            end = MPI_Wtime() + HURRY < end ? MPI_Wtime() + HURRY : end;
        }
        if (waits || MPI_Wtime() > end)
            return LAPSE_EXCHANGE_LATE;
        pause_turn(turn);
    }
}

/* Sends a text to all other ranks, and waits for it to arrive for up to `seconds`. */
static void tell_all(mpi_comm *comm, const char *sentence, double seconds)
{
    lapse_message message = {comm->sent, TEXT};
    snprintf(comm->sent, TEXT, "%s", sentence);
    for (int r = 0; r < comm->size; r++) {
        comm->requests[r] = MPI_REQUEST_NULL;
        if (r != comm->rank && begin(comm, true, &message, r, FAILURE_TAG, &comm->requests[r]) != MPI_SUCCESS)
            comm->requests[r] = MPI_REQUEST_NULL;
    }
    double end = MPI_Wtime() + seconds;
    for (int done = 0, turn = 0; !done && MPI_Wtime() < end; turn++) {
        MPI_Testall(comm->size, comm->requests, &done, MPI_STATUSES_IGNORE);
        pause_turn(turn);
    }
}

/* Cancels what has not been done, and finds the ranks that are missing: those that wait for other ranks say so. */
static void find_missing(mpi_comm *comm, const lapse_exchange *exchange, bool late)
{
    for (int i = 0; i < 2 * comm->size; i++) {
        int done = 0;
        if (comm->requests[i] == MPI_REQUEST_NULL || MPI_Test(&comm->requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
            done)
            continue;
        exchange->missing[i % comm->size] = true; /* its message, or the receipt of ours */
        if (i < comm->size)
            MPI_Cancel(&comm->requests[i]);
        MPI_Request_free(&comm->requests[i]);
    }
    if (!late || *exchange->hurry)
        return;
    tell_all(comm, "", 1);
    double end = MPI_Wtime() + 2;
    for (int turn = 0; MPI_Wtime() < end; turn++) {
        bool waits;
        if (take_told(comm, &waits))
            break;
        pause_turn(turn);
    }
    int missing = 0;
    for (int r = 0; r < comm->size; r++)
        missing += exchange->missing[r] && !comm->alive[r];
    for (int r = 0; missing > 0 && r < comm->size; r++)
        exchange->missing[r] = exchange->missing[r] && !comm->alive[r];
}

static lapse_exchange_status exchange_bytes(void *context, const lapse_exchange *exchange)
{
    mpi_comm *comm = context;
    int tag = 1 + (int)(exchange->tag % TAGS);
    for (int i = 0; i < 2 * comm->size; i++)
        comm->requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < 2 * comm->size; i++) {
        bool send = i >= comm->size;
        int rank = send ? i - comm->size : i;
        const lapse_message *message = send ? &exchange->send[rank] : &exchange->receive[rank];
        if (message->size > 0 && failed(begin(comm, send, message, rank, tag, &comm->requests[i]), exchange->why,
                                        exchange->why_size))
            return LAPSE_EXCHANGE_FAILED;
    }
    lapse_exchange_status status = wait_all(comm, exchange);
    if (status != LAPSE_EXCHANGE_DONE)
        find_missing(comm, exchange, status == LAPSE_EXCHANGE_LATE);
    return status;
}

static void tell(void *context, const char *sentence)
{
    tell_all(context, sentence, 2);
}

static void end_all(void *context)
{
    MPI_Abort(((mpi_comm *)context)->world, 1);
}

static void close_comm(void *context)
{
    mpi_comm *comm = context;
    MPI_Cancel(&comm->told);
    MPI_Request_free(&comm->told);
    MPI_Comm_free(&comm->world);
    MPI_Free_mem(comm->requests);
    MPI_Free_mem(comm->alive);
    if (comm->finalizes)
        MPI_Finalize();
}

/* Ranks on this machine. */
static void find_local(const mpi_comm *comm, lapse_comm_functions *functions)
{
    MPI_Comm local;
    if (MPI_Comm_split_type(comm->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local) != MPI_SUCCESS)
        return;
    MPI_Comm_rank(local, &functions->local_rank);
    MPI_Comm_size(local, &functions->local_size);
    MPI_Comm_free(&local);
}

__attribute__((visibility("default"))) bool lp_mpi_open(int version, lapse_comm_functions *functions, char *library,
                                                        size_t library_size, char *why, size_t size);

bool lp_mpi_open(int version, lapse_comm_functions *functions, char *library, size_t library_size, char *why,
                 size_t size)
{
    int ready = 0, level = 0, length = 0;
    char name[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    if (version != LP_MPI_VERSION) {
        snprintf(why, size, "the plugin is of another version of Lapse");
        return false;
    }
    MPI_Get_library_version(name, &length);
    snprintf(library, library_size, "%.*s", (int)strcspn(name, ",\n"), name); /* "MPICH Version:<tab>4.0.2" */
    for (char *tab = strchr(library, '\t'); tab; tab = strchr(tab, '\t'))
        *tab = ' ';
    MPI_Initialized(&ready);
    state = (mpi_comm){.finalizes = !ready};
    if (!ready && failed(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), why, size))
        return false;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED) {
        snprintf(why, size, "%s does not support calls from different threads (MPI_THREAD_SERIALIZED)", library);
        return false;
    }
    if (failed(MPI_Comm_dup(MPI_COMM_WORLD, &state.world), why, size))
        return false;
    MPI_Comm_set_errhandler(state.world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(state.world, &state.rank);
    MPI_Comm_size(state.world, &state.size);
    if (failed(MPI_Alloc_mem((MPI_Aint)(2 * (size_t)state.size * sizeof *state.requests), MPI_INFO_NULL, &state.requests), why, size) ||
        failed(MPI_Alloc_mem(state.size, MPI_INFO_NULL, &state.alive), why, size))
        return false;
    memset(state.alive, 0, (size_t)state.size);
    MPI_Irecv(state.received, TEXT, MPI_BYTE, MPI_ANY_SOURCE, FAILURE_TAG, state.world, &state.told);
    *functions = (lapse_comm_functions){.context = &state,
                                        .rank = state.rank,
                                        .size = state.size,
                                        .local_size = 1,
                                        .exchange = exchange_bytes,
                                        .fail = tell,
                                        .abort = end_all,
                                        .close = close_comm};
    find_local(&state, functions);
    return true;
}
