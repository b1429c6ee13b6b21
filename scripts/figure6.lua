#!/usr/bin/env trinity
-- Figure 6 of the Trinity paper: run time of a step on two and four cards, by one card, expert,
-- Hierarchical and Trinity, as CSV and pictures. Searches are shared with figures 6, 7 and 8 (--kept).

require('trinity.paper.figures').draw { number = 6, title = 'run time of a step', y = 'step time in s',
  csv = 'step_time_s', field = 'step_time_s', unit = 1, column = 1, bound = true }
