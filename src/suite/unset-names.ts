/**
 * Finds what a script of a run reads that nobody gives it, when the variables of its case are not known: an
 * empty name can let a check pass. Rules for the usual forms of bash, and of other languages' environment.
 */

/** Names that a shell or a sandbox has by itself. */
const given =
  /^(_|BASH\w*|PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|IFS|S?RANDOM|SECONDS|EPOCH\w+|LINENO|FUNCNAME|PIPESTATUS|REPLY|OPT(ARG|IND|ERR)|E?UID|PPID|GROUPS|HOST(NAME|TYPE)|MACHTYPE|OSTYPE|SHLVL|TERM|COLUMNS|LINES|LANG|LC_\w+|TMPDIR|DIRSTACK|MAPFILE|COPROC|PS\d|CI|DEBIAN_FRONTEND|OFFSITE_\w+|\w+_proxy|\w+_PROXY)$/;

/** `$name` and `${name}`; not `${name:-default}`, which says what holds without it. */
const readByShell = /(?<!\\)\$(?:([A-Za-z_]\w*)|\{[!#]?([A-Za-z_]\w*)(?!\w|:?[-=+]))/g;

/** `os.environ["name"]`, `getenv('name')`, `process.env.name`, `printenv name`. */
const readElsewhere =
  /(?:environ(?:\.get)?\s*[[(]|getenv\s*\(|process\.env\s*[.[]|\bprintenv )\s*["']?([A-Za-z_]\w*)/gi;

/** `name=`, `((name++))` and the commands of bash that set the names after them. */
const assigned = /(?<![\w$])([A-Za-z_]\w*)(?:\[[^\]]*\])?(?:[-+*/]?=(?!=)|\+\+|--)/g;
const setting =
  /\b(?:for|select|read|mapfile|readarray|getopts|local|declare|typeset|export|readonly|printf -v)\b([^;\n|&]*)/g;

/** May set any name. */
const settingAnything = /(?:^|[\s;&|(])(?:source|\.|eval)\s+\S/m;

/** The names that a script reads, although nothing that is known here sets them. */
export function unsetNames(script: string, known: readonly string[] = []): string[] {
  const shell = expandedByShell(script);
  const set = new Set(known);
  for (const [, name = ''] of shell.matchAll(assigned)) set.add(name);
  for (const [, words = ''] of shell.matchAll(setting)) {
    for (const [word] of words.matchAll(/(?<![\w$])[A-Za-z_]\w*/g)) set.add(word);
  }
  const inShell = settingAnything.test(shell) ? [] : [...shell.matchAll(readByShell)];
  const read = [...inShell, ...script.matchAll(readElsewhere)].map(([, one, other]) => one ?? other ?? '');
  return [...new Set(read)].filter((name) => !set.has(name) && !given.test(name));
}

/** Whether the module of a validator uses the variables of its case. */
export function usesVariables(module: string): boolean {
  return /\bvariables\b\s*(?:[,}.[]|\?\.)/.test(module.replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, ''));
}

/**
 * A script without comments, and without texts that bash does not expand. What `-c` takes is expanded by
 * another shell.
 */
function expandedByShell(script: string): string {
  const withoutTexts = script.replace(
    /^(.*)<<-?\s*(['"\\])(\w+).*\n[\s\S]*?^\s*\3$/gm,
    (text, before: string) => (/\b(?:ba|da)?sh\b/.test(before) ? text : before),
  );
  return withoutTexts.replace(
    /\\[\s\S]|(?<=^|[\s;&|(])#.*|(-c\s+)?'[^']*'|"(?:\\[\s\S]|[^"\\])*"/gm,
    (part, option?: string) => {
      if (option !== undefined || (part.startsWith('"') && !part.includes('$('))) return part;
      return part.startsWith('"') ? part.replace(/(?<!-c\s+)'[^']*'/g, ' ') : ' ';
    },
  );
}
