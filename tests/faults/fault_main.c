/* fault_main.c: the main function of the tool, under the name lapse_main. */
#include "fault.h"

#define main lapse_main
#include "../../cli/main.c"
