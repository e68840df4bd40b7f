/**
 * What a validator gets in place of the variables that decide what programs run or load, and name a folder in
 * the workspace.
 */
export function closedVariables(
  env: Readonly<Record<string, string>>,
  workspace: string,
): Record<string, string> {
  const closed = Object.entries(env).flatMap(([name, value]) => {
    const without = name === 'PATH' ? pathOutside(value, workspace) : '';
    const isOpen = name === 'PATH' ? without !== value : pathsIn(value, workspace).length > 0;
    return isOpen && loading.test(name) ? [[name, without] as const] : [];
  });
  return Object.fromEntries(closed);
}

/** Variables that decide what programs run or load. */
const loading =
  /^(PATH|HOME|ENV|BASH_ENV|LD_.*|NODE_(OPTIONS|PATH)|PYTHON.*|PERL.*|RUBY(LIB|OPT)|GIT_.*|CLASSPATH|JAVA_TOOL_OPTIONS)$/;

/** The parts of a variable, separated as in PATH or in options, that are in a folder. */
function pathsIn(value: string, folder: string): string[] {
  return value.split(/[:;,=\s]/).filter((part) => part === folder || part.startsWith(`${folder}/`));
}

/** A PATH without folders in the workspace. Relative ones are: commands start there. */
function pathOutside(path: string, workspace: string): string {
  const isOutside = (part: string) => part.startsWith('/') && pathsIn(part, workspace).length === 0;
  return path.split(':').filter(isOutside).join(':');
}
