/** A case's variables: `{{name}}` in its texts, and environment variables of the same name in its scripts. */

export type Variables = Record<string, unknown>;

const reference = /(\\)?\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g;

/** Names a variable may not take in the environment: they decide how programs run, or are ours. */
const reservedNames = /^(PATH|HOME|SHELL|USER|PWD|IFS|ENV|BASH_.*|LD_.*|NODE_OPTIONS|PYTHONPATH|OFFSITE_.*)$/;

/**
 * Puts the values of `variables` in the places of `{{name}}`; `\{{name}}` stands for the characters `{{name}}`. Values that are not
 * strings are written as JSON. An unknown name is kept as it stands, or handed to `unknownName` with its offset in the text.
 */
export function expandVariables(
  text: string,
  variables: Variables,
  unknownName: 'keep' | ((name: string, offset: number) => void),
): string {
  return text.replace(reference, (match, escaped: string | undefined, name: string, offset: number) => {
    if (escaped) return match.slice(1);
    if (Object.hasOwn(variables, name)) return valueText(variables[name]);
    if (unknownName !== 'keep') unknownName(name, offset);
    return match;
  });
}

/** The variables as environment variables: those whose names can be one. Values that are not strings are written as JSON. */
export function variablesAsEnvironment(variables: Variables): Record<string, string> {
  const usable = Object.entries(variables).filter(
    ([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !isReservedName(name),
  );
  return Object.fromEntries(usable.map(([name, value]) => [name, valueText(value)]));
}

export function isReservedName(name: string): boolean {
  return reservedNames.test(name);
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
