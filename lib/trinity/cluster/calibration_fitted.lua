-- Fitted sets of constants by name (calibration.lua has units and meanings), and the rows that each was fitted to.
return {
  a100_vtrain = {
    rows = {},
    values = {},
  },
  a100_vtrain_composed = {
    rows = {},
    values = {},
  },
}
