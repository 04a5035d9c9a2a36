/* assert.h: LP_ASSERT checks an invariant of our own state, never input: that is an error with a message (error.h).
 *
 * It is checked in debug and sanitizer builds. In a release build its condition is compiled and not evaluated: it must have no side
 * effects, and a function that only asserts call costs nothing. A failed check prints the condition with its place and ends the program.
 */
#ifndef LP_ASSERT_H
#define LP_ASSERT_H

/* LP_CHECKED: set by the build for sanitizers, whatever the build type is. */
#if defined(LP_CHECKED) || !defined(NDEBUG)
#ifdef __cplusplus
extern "C" [[noreturn]] void lp_assert_failed(const char *condition, const char *file, int line);
#else
_Noreturn void lp_assert_failed(const char *condition, const char *file, int line);
#endif
#define LP_ASSERT(condition) ((condition) ? (void)0 : lp_assert_failed(#condition, __FILE__, __LINE__))
#else
#define LP_ASSERT(condition) ((void)(0 && (condition)))
#endif

#endif
