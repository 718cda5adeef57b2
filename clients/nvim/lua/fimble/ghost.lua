--- Suggestions on Neovim 0.11: asks on every change, and draws the newest answer with extmarks.
--- Waiting, remembering and superseding are the server's.

local client_module = require("fimble.client")
local insert = require("fimble.insert")

local M = {}

local DRAWN = vim.api.nvim_create_namespace("fimble.suggestion")
local MARKS = vim.api.nvim_create_namespace("fimble.suggestion.range")
local METHOD = "textDocument/inlineCompletion"
local INVOKED, AUTOMATIC = 1, 2

---@class fimble.Item
---@field text string
---@field crlf boolean
---@field start_mark integer
---@field stop_mark integer
---@field command? lsp.Command

---@class fimble.Ghost
---@field items fimble.Item[]
---@field index integer
---@field client_id integer
---@field cancel? fun()
---@field seen string where the cursor was, in which text
---@field asked integer number of the newest request
---@field hint boolean whether to say which of several it is

---@type table<integer, fimble.Ghost>
local ghosts = {}
local is_on = true

---@param buf integer
---@return fimble.Ghost
local function of(buf)
  ghosts[buf] = ghosts[buf]
    or { items = {}, index = 1, client_id = 0, seen = "", asked = 0, hint = false }
  return ghosts[buf]
end

---@param buf integer
local function erase(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    vim.api.nvim_buf_clear_namespace(buf, DRAWN, 0, -1)
  end
end

--- Forgets what is shown and what was asked for.
---@param buf integer
local function drop(buf)
  local ghost = of(buf)
  if ghost.cancel then
    ghost.cancel()
    ghost.cancel = nil
  end
  ghost.asked = ghost.asked + 1
  ghost.items, ghost.hint = {}, false
  if vim.api.nvim_buf_is_loaded(buf) then
    vim.api.nvim_buf_clear_namespace(buf, MARKS, 0, -1)
  end
  erase(buf)
end

--- The suggestion that is shown, with its range where it is by now.
---@param buf integer
---@return fimble.Offer?
local function current(buf)
  local ghost = of(buf)
  local item = ghost.items[ghost.index]
  if not item then
    return nil
  end
  local start = vim.api.nvim_buf_get_extmark_by_id(buf, MARKS, item.start_mark, {})
  local stop = vim.api.nvim_buf_get_extmark_by_id(buf, MARKS, item.stop_mark, {})
  if #start == 0 or #stop == 0 then
    return nil
  end
  return {
    text = item.text,
    crlf = item.crlf,
    start = { start[1], start[2] },
    stop = { stop[1], stop[2] },
    client_id = ghost.client_id,
    command = item.command,
  }
end

--- Tabs as blanks: virtual text does not expand them.
---@param text string
---@param column integer display column where it begins
---@return string
local function expanded(text, column)
  local width = vim.bo.tabstop
  local result = ""
  for piece, tab in text:gmatch("([^\t]*)(\t?)") do
    result = result .. piece
    if tab ~= "" then
      local at = column + vim.fn.strdisplaywidth(result)
      result = result .. (" "):rep(width - at % width)
    end
  end
  return result
end

--- The rest without what stands right of the cursor already and would be replaced.
---@param rest string
---@param tail string
---@return string
local function without_tail(rest, tail)
  if tail ~= "" and vim.endswith(rest, tail) and not rest:find("\n") then
    return rest:sub(1, #rest - #tail)
  end
  return rest
end

--- Draws `rest` at the cursor. What stands right of it moves behind the last line.
---@param buf integer
---@param offer fimble.Offer
---@param rest string
---@param hint string
local function draw(buf, offer, rest, hint)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  row = row - 1
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  local on_line = offer.stop[1] == row and math.max(offer.stop[2], col) or col
  local lines = vim.split(without_tail(rest, line:sub(col + 1, on_line)), "\n")
  local column = vim.fn.strdisplaywidth(line:sub(1, col))
  local first = expanded(lines[1], column)
  local shown = { { first, "FimbleSuggestion" } }
  if #lines == 1 then
    table.insert(shown, { hint, "FimbleHint" })
    vim.api.nvim_buf_set_extmark(buf, DRAWN, row, col, {
      virt_text = shown,
      virt_text_pos = "inline",
      hl_mode = "combine",
    })
    return
  end
  local right = line:sub(on_line + 1)
  local hidden = vim.fn.strdisplaywidth(line:sub(col + 1), column)
  local missing = hidden - vim.fn.strdisplaywidth(first, column)
  table.insert(shown, { (" "):rep(math.max(0, missing)) })
  local below = {} ---@type [string, string?][][]
  for index = 2, #lines do
    local chunks = { { expanded(lines[index], 0), "FimbleSuggestion" } }
    if index == #lines then
      table.insert(chunks, { right })
      table.insert(chunks, { hint, "FimbleHint" })
    end
    table.insert(below, chunks)
  end
  vim.api.nvim_buf_set_extmark(buf, DRAWN, row, col, {
    virt_text = shown,
    virt_text_pos = "overlay",
    virt_lines = below,
    hl_mode = "combine",
  })
end

--- Draws what there is, or nothing where something else was typed.
---@param buf integer
local function show(buf)
  erase(buf)
  if not vim.startswith(vim.api.nvim_get_mode().mode, "i") then
    return
  end
  local ghost, offer = of(buf), current(buf)
  local rest = offer and insert.rest(buf, offer)
  if not offer or not rest or rest == "" then
    return
  end
  local hint = ghost.hint and (" (%d/%d)"):format(ghost.index, #ghost.items) or ""
  draw(buf, offer, rest, hint)
end

--- A place of the server's as an extmark, which keeps it while the user types.
---@param buf integer
---@param position lsp.Position
---@param encoding string
---@param right boolean whether text inserted there comes before it
---@return integer
local function mark(buf, position, encoding, right)
  local row = math.min(position.line, vim.api.nvim_buf_line_count(buf) - 1)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  local col = vim.str_byteindex(line, encoding, position.character, false)
  return vim.api.nvim_buf_set_extmark(buf, MARKS, row, col, { right_gravity = right })
end

---@param buf integer
---@param client vim.lsp.Client
---@param answer lsp.InlineCompletionList
local function take(buf, client, answer)
  local ghost = of(buf)
  vim.api.nvim_buf_clear_namespace(buf, MARKS, 0, -1)
  ghost.client_id, ghost.index, ghost.items = client.id, 1, {}
  for _, each in ipairs(answer.items or answer) do
    local text, crlf = insert.plain(each.insertText)
    table.insert(ghost.items, {
      text = text,
      crlf = crlf,
      start_mark = mark(buf, each.range.start, client.offset_encoding, false),
      stop_mark = mark(buf, each.range["end"], client.offset_encoding, true),
      command = each.command,
    })
  end
end

--- Asks the server; the request before this one is void.
---@param buf integer
---@param kind integer
---@param taken fun() called when the answer is there
local function ask(buf, kind, taken)
  local ghost, client = of(buf), client_module.of(buf)
  if ghost.cancel then
    ghost.cancel()
    ghost.cancel = nil
  end
  if not client or not is_on then
    return
  end
  ghost.asked = ghost.asked + 1
  local this = ghost.asked
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  ---@cast params table
  params.context = { triggerKind = kind }
  ghost.cancel = client_module.request(client, METHOD, params, function(problem, result)
    if this ~= ghost.asked or not vim.api.nvim_buf_is_loaded(buf) then
      return
    end
    ghost.cancel = nil
    if not problem and vim.api.nvim_get_current_buf() == buf then
      take(buf, client, result or {})
      taken()
    end
  end, buf)
end

--- The text has changed, or the cursor has moved.
---@param buf integer
local function refresh(buf)
  if not is_on then
    return
  end
  local ghost = of(buf)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local seen = ("%d %d %d"):format(tick, row, col)
  if seen == ghost.seen then
    return
  end
  if vim.startswith(ghost.seen, tick .. " ") then
    drop(buf) -- the cursor moved and nothing was typed
  end
  ghost.seen, ghost.hint = seen, false
  show(buf)
  M.ask_again(buf)
end

---@param buf integer
function M.ask_again(buf)
  ask(buf, AUTOMATIC, function()
    show(buf)
  end)
end

---@param _ vim.lsp.Client
---@param buf integer
function M.attach(_, buf)
  local group = vim.api.nvim_create_augroup("fimble.ghost." .. buf, {})
  vim.api.nvim_create_autocmd({ "InsertEnter", "CursorMovedI", "TextChangedI", "TextChangedP" }, {
    group = group,
    buffer = buf,
    callback = function()
      refresh(buf)
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, {
    group = group,
    buffer = buf,
    callback = function()
      drop(buf)
      of(buf).seen = ""
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    group = group,
    buffer = buf,
    callback = function()
      ghosts[buf] = nil
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
end

---@param on boolean
function M.enable(on)
  is_on = on
  for buf in pairs(ghosts) do
    drop(buf)
  end
end

---@param buf integer
---@return boolean
function M.visible(buf)
  return #vim.api.nvim_buf_get_extmarks(buf, DRAWN, 0, -1, { limit = 1 }) > 0
end

---@type fimble.Part
local wanted = "all"

--- In an `<expr>` map nothing may be changed: the keys that it gives come back here.
---@param _ integer
---@param part fimble.Part
---@return string
function M.accept(_, part)
  wanted = part
  return "<C-g>u<Cmd>lua require('fimble.ghost').insert()<CR><C-g>u"
end

--- Inserts what is shown, as far as was wanted.
function M.insert()
  local buf = vim.api.nvim_get_current_buf()
  local offer = current(buf)
  if not offer then
    return
  end
  erase(buf)
  if insert.take(buf, offer, wanted) then
    drop(buf)
  else
    show(buf)
  end
end

--- Shows another suggestion; asks for several where there is one.
---@param buf integer
---@param step 1|-1
function M.cycle(buf, step)
  local ghost = of(buf)
  if #ghost.items > 1 then
    ghost.index = (ghost.index - 1 + step) % #ghost.items + 1
    ghost.hint = true
    show(buf)
    return
  end
  local shown = ghost.items[ghost.index]
  ask(buf, INVOKED, function()
    ghost.hint = true
    local same = shown and ghost.items[1] and ghost.items[1].text == shown.text
    if step == -1 then
      ghost.index = math.max(1, #ghost.items)
    elseif same and #ghost.items > 1 then
      ghost.index = 2
    end
    show(buf)
  end)
end

---@param buf integer
function M.dismiss(buf)
  drop(buf)
end

---@param buf integer
function M.trigger(buf)
  ask(buf, INVOKED, function()
    show(buf)
  end)
end

return M
