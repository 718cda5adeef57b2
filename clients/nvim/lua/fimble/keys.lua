--- Keys of insert mode. A key does what it did before where no suggestion is shown.

local options = require("fimble.options")

local M = {}

---@type table<integer, table<string, table>> maps of the buffer's own that ours took the place of
local former = {}

--- What the key does without us: a map of the buffer's, a global one, or the key itself.
---@param buf integer
---@param key string
local function fall_through(buf, key)
  local prior = (former[buf] or {})[key]
  if not prior then
    local raw = vim.keycode(key)
    for _, map in ipairs(vim.api.nvim_get_keymap("i")) do
      if map.lhsraw == raw or map.lhsrawalt == raw or vim.keycode(map.lhs) == raw then
        prior = vim.deepcopy(map)
      end
    end
  end
  if not prior then
    vim.api.nvim_feedkeys(vim.keycode(key), "ni", false)
    return
  end
  -- The same map under another name: its own flags (expr, silent, script) are kept.
  local name = "<Plug>(fimble-former)"
  prior.lhs, prior.lhsraw, prior.lhsrawalt = name, vim.keycode(name), nil
  prior.buffer = 1
  vim.fn.mapset("i", false, prior)
  vim.api.nvim_feedkeys(vim.keycode(name), "mi", false)
end

--- Sets the keys of the options for a buffer.
---@param buf integer
function M.attach(buf)
  former[buf] = former[buf] or {}
  for action, key in pairs(options.current.keys) do
    if key then
      vim.api.nvim_buf_call(buf, function()
        local map = vim.fn.maparg(key, "i", false, true)
        local is_ours = vim.startswith(map.desc or "", "fimble: ")
        if map.buffer == 1 and not is_ours then
          former[buf][key] = map
        end
      end)
      vim.keymap.set("i", key, function()
        local keys = require("fimble.suggestions").on_key(action)
        if not keys then
          fall_through(buf, key)
        end
        return keys or ""
      end, { buffer = buf, expr = true, desc = "fimble: " .. action:gsub("_", " ") })
    end
  end
end

return M
