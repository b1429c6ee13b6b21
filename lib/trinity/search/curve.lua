-- The curve of a search: rewards by evaluations. It has each of the first 1,000 steps, then one whenever evaluations
-- have grown by 0.1 % or the best has changed, and the last step. The choice depends on counts and rewards alone.

local search_curve = {}

local every_step, growth = 1000, 1.001

local function add(search, mean_reward)
  local best = search.best
  search.curve[#search.curve + 1] = { evaluations = search.evaluations, mean_reward = mean_reward,
    best_reward = best.reward, best_step_time_s = best.metrics.step_time_s }
end

--- Adds a step with the given mean reward of its placements. Sets step, mean_reward and sum_of_means (over all steps).
function search_curve.note(search, mean_reward)
  search.step = search.step + 1
  search.mean_reward, search.sum_of_means = mean_reward, (search.sum_of_means or 0) + mean_reward
  local last = search.curve[#search.curve]
  if search.step <= every_step or not last or search.evaluations >= growth * last.evaluations
    or search.best.reward ~= last.best_reward then add(search, mean_reward) end
end

--- Adds the last step if it is missing.
function search_curve.complete(search)
  local last = search.curve[#search.curve]
  if last and search.mean_reward and last.evaluations < search.evaluations then add(search, search.mean_reward) end
end

return search_curve
