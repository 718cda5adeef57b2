--- Places of the editor in the server's terms. Knows nothing of requests.

local M = {}

---@param buf integer
---@param row integer from 0
---@param col integer bytes
---@param encoding string
---@return lsp.Position
local function position(buf, row, col, encoding)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  local units = vim.str_utfindex(line, encoding, math.min(col, #line), false)
  return { line = row, character = units }
end

--- What a command is about: the selection or the lines of its range, or the cursor.
---@param buf integer
---@param call { range: integer, line1: integer, line2: integer }
---@param encoding string
---@return lsp.Range
function M.range(buf, call, encoding)
  if call.range == 0 then
    local row, col = unpack(vim.api.nvim_win_get_cursor(0))
    local here = position(buf, row - 1, col, encoding)
    return { start = here, ["end"] = here }
  end
  local from = vim.api.nvim_buf_get_mark(buf, "<")
  local to = vim.api.nvim_buf_get_mark(buf, ">")
  local is_selection = call.line1 == from[1] and call.line2 == to[1] and vim.fn.visualmode() == "v"
  if is_selection then
    local line = vim.api.nvim_buf_get_lines(buf, to[1] - 1, to[1], true)[1]
    local last = to[2] + #vim.fn.strpart(line, to[2], 1, 1)
    return {
      start = position(buf, from[1] - 1, from[2], encoding),
      ["end"] = position(buf, to[1] - 1, last, encoding),
    }
  end
  return {
    start = { line = call.line1 - 1, character = 0 },
    ["end"] = position(buf, call.line2 - 1, vim.v.maxcol, encoding),
  }
end

--- The diagnostics on the lines of a range.
---@param buf integer
---@param range lsp.Range
---@param encoding string
---@return { range: lsp.Range, message: string, source: string }[]
function M.diagnostics(buf, range, encoding)
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(buf)) do
    if each.lnum <= range["end"].line and (each.end_lnum or each.lnum) >= range.start.line then
      table.insert(found, {
        range = {
          start = position(buf, each.lnum, each.col, encoding),
          ["end"] = position(buf, each.end_lnum or each.lnum, each.end_col or each.col, encoding),
        },
        message = each.message,
        source = each.source or "",
      })
    end
  end
  return found
end

return M
