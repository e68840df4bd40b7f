/** A processor of sandboxes, as Python's markers name it. */
export type Processor = 'x86_64' | 'aarch64';

/**
 * The text of a CLI's lock. A line that only one processor has gets a marker.
 *
 * @param resolved lines `name==version` for each processor
 */
export function lockText(cli: string, resolved: Readonly<Record<Processor, readonly string[]>>): string {
  const { x86_64, aarch64 } = resolved;
  const lines = [
    ...x86_64.map((line) => (aarch64.includes(line) ? line : only('x86_64', line))),
    ...aarch64.filter((line) => !x86_64.includes(line)).map((line) => only('aarch64', line)),
  ];
  const sorted = lines.toSorted((a, b) => (nameIn(a) < nameIn(b) ? -1 : Number(nameIn(a) > nameIn(b))));
  return [`# Written by: node scripts/lock-python.ts ${cli}`, ...sorted, ''].join('\n');
}

function only(processor: Processor, line: string): string {
  return `${line} ; platform_machine == '${processor}'`;
}

function nameIn(line: string): string {
  return line.replace(/==.*/, '');
}
