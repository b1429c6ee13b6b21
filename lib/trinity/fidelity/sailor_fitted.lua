-- Fitted by `trinity fidelity sailor --fit --save`: values by kind of machine and name
-- (sailor_constants.lua has units and meanings), and the plans that they were fitted to.
return {
  plans = {
    'clariden/GPT-NEO/N32/plan_config_N32_D16.json',
    'clariden/GPT-NEO/N32/plan_config_N32_D8.json',
    'clariden/GPT-NEO/N64/plan_config_N64_D16.json',
    'clariden/GPT-NEO/N8/plan_config_N8_D4.json',
    'clariden/OPT-350/N1/plan_config_N1_D1_M4_G1.json',
    'clariden/OPT-350/N16/plan_config_N16_D16.json',
    'clariden/OPT-350/N16/plan_config_N16_D4.json',
    'clariden/OPT-350/N16/plan_config_N16_D8.json',
    'clariden/OPT-350/N32/plan_config_N32_D16.json',
    'clariden/OPT-350/N32/plan_config_N32_D32.json',
    'clariden/OPT-350/N4/plan_config_N4_D1.json',
    'clariden/OPT-350/N4/plan_config_N4_D2.json',
    'clariden/OPT-350/N4/plan_config_N4_D4.json',
    'clariden/OPT-350/N8/plan_config_N8_D2.json',
    'clariden/OPT-350/N8/plan_config_N8_D4.json',
    'mit/N2/plan_config_N2_D1.json',
    'mit/N4/plan_config_N4_D1.json',
    'mit/N4/plan_config_N4_D2.json',
    'mit/N4/plan_config_N4_D4.json',
  },
  values = {
    gh200 = {
      network_share = 0.6698,
      slot_s = 0.001168,
      state_bytes = 20.07,
      activation_share = 1.101,
      logits_share = 0.4571,
      context_bytes = 4.36e+09,
    },
    mixed = {
      network_share = 0.9912,
      slot_s = 0.001915,
      state_bytes = 20.09,
      activation_share = 1.119,
      logits_share = 0.5367,
      context_bytes = 3.036e+09,
    },
  },
}
