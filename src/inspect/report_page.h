/* report_page.h: the fixed parts of a report: its style sheet and its script. */
#ifndef LP_REPORT_PAGE_H
#define LP_REPORT_PAGE_H

extern const char lp_page_style[], lp_page_script[];

#endif
