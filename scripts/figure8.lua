#!/usr/bin/env trinity
-- Figure 8 of the Trinity paper: peak memory of a device on two and four cards, by one card, expert,
-- Hierarchical and Trinity, as CSV and pictures. Searches are shared with figures 6, 7 and 8 (--kept).

require('trinity.paper.figures').draw { number = 8, title = 'peak memory of a device', y = 'peak memory in GB',
  csv = 'peak_memory_gb', field = 'peak_memory_bytes', unit = 1e9, column = 3, bound = true }
