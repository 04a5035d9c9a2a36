# commit.cmake: writes OUTPUT, a C header with the commit of SOURCE: 12 digits, with "+" if tracked files are changed; "unknown" if
# SOURCE is not the root of a git checkout. The header is written only if it changes, so that nothing is built again otherwise.
cmake_minimum_required(VERSION 3.22)
set(commit "unknown")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET RESULT_VARIABLE failed)
  file(REAL_PATH "${SOURCE}" source)
  if(NOT failed AND top STREQUAL source)
    execute_process(COMMAND ${git} -C ${SOURCE} describe --always --dirty=+ --abbrev=12 --exclude=* OUTPUT_VARIABLE found
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND found)
      set(commit "${found}")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "/* The commit of this build. */\n#define LP_COMMIT \"@commit@\"\n" @ONLY)
