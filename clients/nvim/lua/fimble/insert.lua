--- Inserting a suggestion, or its beginning, as the user would have typed it: one undo step, and
--- part of what `.` repeats. Tells the server what was taken.

local client_module = require("fimble.client")

local M = {}

---@alias fimble.Part "all"|"word"|"line"

---@class fimble.Offer
---@field text string what stands between start and stop afterwards; lines end with LF
---@field crlf boolean whether the server's text had CRLF
---@field start [integer, integer] row and byte column, from 0
---@field stop [integer, integer]
---@field client_id integer
---@field command? lsp.Command what the server wants to hear

--- Text with LF, and whether it had CRLF: a buffer's lines hold no carriage returns.
---@param text string
---@return string, boolean
function M.plain(text)
  local plain, count = text:gsub("\r\n", "\n")
  return plain, count > 0
end

--- What of an offer is still to come behind the cursor; nil if something else was typed.
---@param buf integer
---@param offer fimble.Offer
---@return string? rest, string? typed
function M.rest(buf, offer)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  row = row - 1
  local start = offer.start
  if row < start[1] or (row == start[1] and col < start[2]) then
    return nil
  end
  local ok, lines = pcall(vim.api.nvim_buf_get_text, buf, start[1], start[2], row, col, {})
  if not ok then
    return nil
  end
  local typed = table.concat(lines, "\n")
  if not vim.startswith(offer.text, typed) then
    return nil
  end
  return offer.text:sub(#typed + 1), typed
end

---@param rest string
---@param part fimble.Part
---@return string
local function beginning(rest, part)
  local piece = rest
  if part == "word" then
    piece = vim.fn.matchstr(rest, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
  elseif part == "line" then
    piece = rest:match("^\n*[^\n]*")
  end
  return piece ~= "" and piece or rest
end

---@param offer fimble.Offer
---@param taken string the offer's text up to the cursor
---@param whole boolean
local function tell(offer, taken, whole)
  local client = vim.lsp.get_client_by_id(offer.client_id)
  if not client or not offer.command then
    return
  end
  local arguments = offer.command.arguments or {}
  if whole then
    client_module.execute(client, offer.command.command, arguments)
    return
  end
  local sent = offer.crlf and taken:gsub("\n", "\r\n") or taken
  local units = vim.str_utfindex(sent, "utf-16")
  client_module.execute(client, "fimble.partiallyAccepted", { arguments[1], units })
end

--- Inserts at the cursor of the current window, which shows `buf`.
---@param buf integer
---@param offer fimble.Offer
---@param part fimble.Part
---@return boolean whether the whole of it was inserted
function M.take(buf, offer, part)
  local rest, typed = M.rest(buf, offer)
  if not rest or not typed then
    return true
  end
  local piece = beginning(rest, part)
  local whole = #piece == #rest
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  row = row - 1
  local stop = offer.stop
  if whole and (stop[1] > row or (stop[1] == row and stop[2] > col)) then
    vim.api.nvim_buf_set_text(buf, row, col, stop[1], stop[2], {})
  end
  -- Pasting, not setting text: it counts as typed, for `.` and for macros.
  vim.api.nvim_paste(piece, false, -1)
  tell(offer, typed .. piece, whole)
  return whole
end

return M
