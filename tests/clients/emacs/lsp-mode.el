;;; lsp-mode.el --- What a user of lsp-mode does, without a screen.  -*- lexical-binding: t -*-

;; emacs -q --batch -L FOLDER … -l lsp-mode.el CONFIGURATION FILE: takes the suggestion at the end
;; of line 2 that is shown as ghost text, saves, and names the code actions.

(load "lsp-mode-autoloads")
(setq lsp-enabled-clients '(fimble)
      lsp-auto-guess-root t
      lsp-guess-root-without-session t
      lsp-restart 'ignore
      lsp-session-file (expand-file-name "session" (getenv "FIMBLE_HOME"))
      make-backup-files nil
      create-lockfiles nil)
(load (pop command-line-args-left) nil nil t)

(defun fimble-test-await (what)
  "Wait until the function WHAT gives something, and give it."
  (let (found)
    (while (not (setq found (funcall what)))
      (accept-process-output nil 0.05))
    found))

(find-file (pop command-line-args-left))
(lsp)
(fimble-test-await
 (lambda () (seq-some (lambda (each) (eq 'initialized (lsp--workspace-status each)))
                      (lsp-workspaces))))
(goto-char (point-min))
(end-of-line 2)
(lsp-inline-completion-display)
(princ (format "ghost: %s\n"
               (substring-no-properties (overlay-get lsp-inline-completion--overlay 'after-string))))
(princ (format "buffer: %S\n" (buffer-substring (line-beginning-position) (line-end-position))))
(lsp-inline-completion-accept)
(save-buffer)
(princ (format "actions: %s\n"
               (mapconcat (lambda (each) (gethash "title" each))
                          (append (lsp-code-actions-at-point) nil) ", ")))
(kill-emacs 0)
