export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/**
 * The completion script of each shell. The scripts ask `offsite complete` for what may come next, so they
 * stay correct when Offsite is updated. The first line of the answer is `files` or `words`, each further line
 * is a word, a tab and a description. Nothing of the answer is evaluated.
 */
export const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# Completion of offsite for bash. In ~/.bashrc: eval "$(offsite completion bash)"
_offsite() {
  local kind word rest
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS=$'\\t' read -r word rest; do COMPREPLY+=("$word"); done
  } < <(command offsite complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  if [[ $kind == files ]]; then compopt -o default 2> /dev/null; fi
}
complete -F _offsite offsite`,
  zsh: `#compdef offsite
# Completion of offsite for zsh. In ~/.zshrc, after compinit: eval "$(offsite completion zsh)"
_offsite() {
  local -a answer words_
  local line
  answer=("\${(@f)$(command offsite complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ $answer[1] == files ]]; then
    _files
    return
  fi
  for line in "\${(@)answer[2,-1]}"; do
    words_+=("\${line%%$'\\t'*}:\${line#*$'\\t'}")
  done
  _describe offsite words_
}
if [[ $funcstack[1] == _offsite ]]; then _offsite "$@"; else compdef _offsite offsite; fi`,
  fish: `# Completion of offsite for fish. In ~/.config/fish/config.fish: offsite completion fish | source
function __offsite_complete
    set -l words (commandline -opc) "$(commandline -ct)"
    set -l answer (command offsite complete -- $words[2..] 2> /dev/null)
    if test "$answer[1]" = files
        __fish_complete_path "$(commandline -ct)"
    else
        string join \\n -- $answer[2..]
    end
end
complete -c offsite -f -a '(__offsite_complete)'`,
};
