-- Pages of papers: what verdicts say and which of them count, and how a page is written.

local page = require 'studies.papers.page'

local function page_of(rows, about)
  return page.text(merged({ name = 'x', title = 'X', about = 'About.' }, about), rows, nil, { format = 'text' })
end

local function rows_of(verdicts)
  local rows = {}
  for i, verdict in ipairs(verdicts) do rows[i] = { what = 'row ' .. i, verdict = verdict } end
  return rows
end

describe('verdicts', function()
  it('count predictions, and separately fits and cases that the paper does not name', function()
    local near = page.verdict { claimed = 2, got = 2.4 }
    local far = page.verdict { claimed = 2, got = 3, by = 'moves' }
    expect(near.agrees):equals(true)
    expect(far.agrees):equals(false)
    expect(far.text):equals '1.50 of the claim; moves'
    local fitted = page.verdict { claimed = 2, got = 2, fitted = 'a constant' }
    local unstated = page.verdict { claimed = 2, got = 2, unstated = true, by = 'moves' }
    expect(fitted.agrees or unstated.agrees):equals(nil)
    expect(unstated.text):equals '1.00 of the claim; moves'
    local text = page_of(rows_of { near, far, fitted, unstated, page.equal(true), page.equal(false, 'differs in b') })
    expect((text:gsub('\n', ' '))):matches("predicted, within a factor of 1%.25: 1 of 2; the same as the paper's: 1 of 2; "
      .. 'fitted, which is no agreement: 1; of cases that the paper does not name, which is no agreement: 1%.')
    expect(text):matches 'differs in b'
  end)
  it('say of paired runs who is ahead, and by what chance', function()
    expect(page.against({ 1, 2, 3, 4, 5 }, { 2, 3, 4, 5, 6 }).text):equals '-25.0 %, p 0.0625 (Wilcoxon, pairs by seed)'
    expect(page.against({ 1 }, { 2 }).text):equals '-50.0 %'
  end)
end)

describe('a page', function()
  it('has its texts flush left and its numbers flush right, under heads of its own', function()
    local rows = { { what = 'a', ours = 1.5, verdict = { text = 'x' } }, { what = 'long', ours = 22, verdict = { text = 'yy' } } }
    local text = page_of(rows, { heads = { ours = 'steps' } })
    expect(text):matches '\n +claimed  paper settings  steps  updates  seeds  verdict\n'
    expect(text):matches '\na +%-               %-    1%.5        %-      %-  x\n'
    expect(text):matches '\nlong  .* 22 .*  yy\n'
    local markdown = page.text({ name = 'x', title = 'X', about = 'About.' }, rows, nil, { format = 'markdown' })
    expect(markdown):matches '\n|%-%-%-|%-%-:|%-%-:|%-%-:|%-%-:|%-%-:|%-%-%-|\n'
  end)
  it('breaks its sentences into lines', function()
    local text = page.wrapped(('word '):rep(50) .. 'end')
    for line in text:gmatch '[^\n]+' do expect(#line):below(121) end
    expect((text:gsub('\n', ' '))):equals(('word '):rep(50) .. 'end')
  end)
end)

describe('a section', function()
  local function section(run) return { name = 'x', title = 'X', about = 'About.', run = run } end
  it('that Ctrl-C ends gives the rows that it has, and says that some are missing', function()
    local rows, notes, stopped = page.run(section(function(rows)
      rows:add { what = 'first', ours = 1 }
      page.unless_stopped { stopped = true }
      rows:add { what = 'second', ours = 2 }
    end), { quiet = true })
    expect(#rows):equals(1)
    expect(rows[1].what):equals 'first'
    expect(stopped):equals(true)
    expect(notes):matches 'Ctrl%-C'
  end)
  it('that goes through is not stopped, and its errors are its own', function()
    local rows, notes, stopped = page.run(section(function(rows)
      rows:add { what = 'all', ours = page.unless_stopped { got = 3 }.got }
      return 'a note'
    end), { quiet = true })
    expect(rows[1].ours):equals(3)
    expect(notes):equals 'a note'
    expect(stopped):equals(false)
    expect(function() page.run(section(function() error('no such thing', 0) end), { quiet = true }) end):raises 'no such thing'
  end)
end)
