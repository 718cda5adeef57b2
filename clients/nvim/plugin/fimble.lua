-- What is there without setup(): the command :Fimble, and <Plug> maps for keys of one's own.
if vim.g.loaded_fimble or vim.fn.has("nvim-0.11") == 0 then
  return
end
vim.g.loaded_fimble = true

vim.api.nvim_set_hl(0, "FimbleSuggestion", { default = true, link = "NonText" })
vim.api.nvim_set_hl(0, "FimbleHint", { default = true, link = "MoreMsg" })

vim.api.nvim_create_user_command("Fimble", function(call)
  require("fimble.command").run(call)
end, {
  nargs = "*",
  range = true,
  desc = "Ask fimble: edit, explain, chat, fix, tests, document, …",
  complete = function(lead, line)
    return require("fimble.command").complete(lead, line)
  end,
})

for _, action in ipairs({
  "accept",
  "accept_word",
  "accept_line",
  "next",
  "previous",
  "dismiss",
  "trigger",
}) do
  local name = "<Plug>(fimble-" .. action:gsub("_", "-") .. ")"
  vim.keymap.set("i", name, function()
    return require("fimble.suggestions").on_key(action) or ""
  end, { expr = true, desc = "fimble: " .. action:gsub("_", " ") })
end
