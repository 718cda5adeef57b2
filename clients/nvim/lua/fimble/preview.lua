--- A workspace edit as a diff, before it is made: accepted or discarded. Knows no server.

local windows = require("fimble.windows")

local M = {}

local NAME = "fimble://preview"

---@class fimble.Pending
---@field edit lsp.WorkspaceEdit
---@field encoding "utf-8"|"utf-16"|"utf-32"
---@field ticks table<integer, integer> what the buffers' texts were

---@type fimble.Pending?
local pending

---@param edit lsp.WorkspaceEdit
---@return { uri: string, edits: lsp.TextEdit[], is_new: boolean }[]
local function changes_in(edit)
  local found, new = {}, {} ---@type table, table<string, boolean>
  for _, change in ipairs(edit.documentChanges or {}) do
    if change.kind == "create" then
      new[change.uri] = true
    elseif change.edits then
      local uri = change.textDocument.uri
      table.insert(found, { uri = uri, edits = change.edits, is_new = new[uri] or false })
    end
  end
  for uri, edits in pairs(edit.changes or {}) do
    table.insert(found, { uri = uri, edits = edits, is_new = false })
  end
  return found
end

--- The edit without what newer Neovims ask the user about: the diff was the question.
---@param edit lsp.WorkspaceEdit
---@return lsp.WorkspaceEdit
local function unannotated(edit)
  local plain = vim.deepcopy(edit)
  plain.changeAnnotations = nil
  for _, change in ipairs(plain.documentChanges or {}) do
    change.annotationId = nil
    for _, each in ipairs(change.edits or {}) do
      each.annotationId = nil
    end
  end
  return plain
end

--- The text of a buffer with edits made, as lines.
---@param lines string[]
---@param edits lsp.TextEdit[]
---@param encoding "utf-8"|"utf-16"|"utf-32"
---@return string[]
local function edited(lines, edits, encoding)
  local scratch = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, true, lines)
  local plain = vim.tbl_map(function(each)
    return { range = each.range, newText = (each.newText:gsub("\r\n", "\n")) }
  end, edits)
  vim.lsp.util.apply_text_edits(plain, scratch, encoding)
  local result = vim.api.nvim_buf_get_lines(scratch, 0, -1, true)
  vim.api.nvim_buf_delete(scratch, { force = true })
  return result
end

---@param edit lsp.WorkspaceEdit
---@param encoding "utf-8"|"utf-16"|"utf-32"
---@return string[] diff, table<integer, integer> ticks
local function diff_of(edit, encoding)
  local shown, ticks = {}, {} ---@type string[], table<integer, integer>
  for _, change in ipairs(changes_in(edit)) do
    local before = {} ---@type string[]
    if not change.is_new then
      local buf = vim.uri_to_bufnr(change.uri)
      vim.fn.bufload(buf)
      ticks[buf] = vim.api.nvim_buf_get_changedtick(buf)
      before = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
    end
    local after = edited(before, change.edits, encoding)
    local path = vim.fn.fnamemodify(vim.uri_to_fname(change.uri), ":.")
    table.insert(shown, "--- " .. (change.is_new and "/dev/null" or path))
    table.insert(shown, "+++ " .. path)
    local text = change.is_new and "" or table.concat(before, "\n") .. "\n"
    local diff = vim.diff(text, table.concat(after, "\n") .. "\n", { ctxlen = 3 })
    vim.list_extend(shown, vim.split(vim.trim(diff --[[@as string]]), "\n"))
  end
  return shown, ticks
end

local function close()
  pending = nil
  local win = vim.fn.bufwinid(vim.fn.bufnr(NAME))
  if win ~= -1 then
    vim.api.nvim_win_close(win, true)
  end
end

--- Shows what `edit` would change. Nothing is changed before |fimble.preview.accept()|.
---@param edit lsp.WorkspaceEdit
---@param encoding "utf-8"|"utf-16"|"utf-32"
---@param notes string[]
function M.show(edit, encoding, notes)
  local diff, ticks = diff_of(edit, encoding)
  if #diff == 0 then
    vim.notify("fimble: nothing would be changed.")
    return
  end
  local lines = { "# <CR> accepts, q discards (:Fimble accept, :Fimble discard)" }
  for _, note in ipairs(notes) do
    table.insert(lines, "# " .. note)
  end
  local buf = windows.show(NAME, "diff", vim.list_extend(lines, diff))
  pending = { edit = edit, encoding = encoding, ticks = ticks }
  vim.keymap.set("n", "<CR>", M.accept, { buffer = buf, nowait = true, desc = "Accept" })
  vim.keymap.set("n", "q", M.discard, { buffer = buf, nowait = true, desc = "Discard" })
end

--- Makes the change that is shown, as one undo step.
function M.accept()
  local what = pending
  if not what then
    vim.notify("fimble: there is no change to accept.", vim.log.levels.WARN)
    return
  end
  close()
  for buf, tick in pairs(what.ticks) do
    if not vim.api.nvim_buf_is_loaded(buf) or vim.api.nvim_buf_get_changedtick(buf) ~= tick then
      vim.notify(
        "fimble: the text was changed since; nothing was done. Ask again.",
        vim.log.levels.WARN
      )
      return
    end
  end
  vim.lsp.util.apply_workspace_edit(unannotated(what.edit), what.encoding)
end

--- Forgets the change that is shown.
function M.discard()
  close()
end

return M
