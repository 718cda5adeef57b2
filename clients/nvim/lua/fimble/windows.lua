--- Windows with a text that is no file.

local M = {}

--- Shows a buffer of that name in a split; in the window that shows it already, if there is one.
---@param name string
---@param filetype string
---@param split string a command, such as "botright split"
---@return integer buf, integer win
function M.open(name, filetype, split)
  local buf = vim.fn.bufnr("^" .. vim.fn.escape(name, "[]*?^$\\") .. "$")
  if buf == -1 then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, name)
  end
  local win = vim.fn.bufwinid(buf)
  if win == -1 then
    vim.cmd(split)
    win = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(win, buf)
  else
    vim.api.nvim_set_current_win(win)
  end
  vim.bo[buf].buftype = "nofile"
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  if vim.bo[buf].filetype ~= filetype then
    -- Its own scripts may fail, as 0.12's for Markdown where a distribution leaves out the parser;
    -- the text is to be seen all the same.
    vim.api.nvim_buf_call(buf, function()
      vim.cmd("silent! setlocal filetype=" .. filetype)
    end)
  end
  return buf, win
end

--- Replaces the text of a buffer that the user cannot change.
---@param buf integer
---@param lines string[]
function M.fill(buf, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
end

--- A text to be read; `q` closes it.
---@param name string
---@param filetype string
---@param lines string[]
---@return integer buf
function M.show(name, filetype, lines)
  local buf = M.open(name, filetype, "botright split")
  M.fill(buf, lines)
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf, nowait = true, desc = "Close" })
  return buf
end

return M
