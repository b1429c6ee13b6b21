#!/usr/bin/env trinity
-- Figure 7 of the Trinity paper: peak communication of a device on two and four cards, by one card, expert,
-- Hierarchical and Trinity, as CSV and pictures. Searches are shared with figures 6, 7 and 8 (--kept).

require('trinity.paper.figures').draw { number = 7, title = 'peak communication of a device',
  y = 'peak communication in GB', csv = 'peak_communication_gb', field = 'peak_communication_bytes', unit = 1e9,
  column = 2, bound = false }
