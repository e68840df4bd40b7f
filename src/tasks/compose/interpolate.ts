import { OffsiteError } from '../../base/offsite-error.ts';
import { yamlFiles } from '../../bounds/suite.ts';
import { printPath } from '../../contract/errors.ts';
import type { Path } from '../../suite/yaml-file.ts';

/** Stands for a folder of the host that the format's own program mounts for logs. */
export const hostLogs = 'offsite:logs';

/** Stands for the name that the format's own program gives the image of the main container. */
export const mainImage = 'offsite:main-image';

/** `$$`, `$NAME`, `${NAME}`, or `${NAME` with an operator, whose text follows up to the closing brace. */
const reference = /\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(:?[-?+])?)/g;

interface Interpolation {
  variables: Readonly<Record<string, string>>;
  /** Called for a variable without a value and without a default. */
  onUnset(name: string, path: Path): void;
}

/**
 * A value of a compose file in which the variables in all texts have their values, as Compose does it. Keys
 * stay as they are. Throws an `input` error if the texts become too long.
 */
export function interpolated(value: unknown, { variables, onUnset }: Interpolation): unknown {
  let characters = 0;
  const each = (inner: unknown, path: Path): unknown => {
    if (typeof inner === 'string') {
      const text = inText(inner, variables, (name) => onUnset(name, path));
      characters += text.length;
      if (characters <= yamlFiles.bytes.expanded) return text;
      throw new OffsiteError(`${printPath(path)}: its variables stand for too much text`, {
        code: 'BAD_FILE',
        kind: 'input',
      });
    }
    if (Array.isArray(inner)) return inner.map((element, index) => each(element, [...path, index]));
    if (typeof inner !== 'object' || inner === null) return inner;
    return Object.fromEntries(
      Object.entries(inner).map(([key, member]) => [key, each(member, [...path, key])]),
    );
  };
  return each(value, []);
}

function inText(
  text: string,
  variables: Readonly<Record<string, string>>,
  onUnset: (name: string) => void,
): string {
  let result = '';
  let at = 0;
  reference.lastIndex = 0;
  for (let match = nextReference(text, at); match; match = nextReference(text, at)) {
    const [whole, dollar, plain, braced, operator] = match;
    result += text.slice(at, match.index);
    at = match.index + whole.length;
    if (dollar !== undefined) {
      result += '$';
      continue;
    }
    const name = plain ?? braced ?? '';
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    let operand = '';
    if (braced !== undefined) {
      const end = closingBrace(text, at);
      operand = text.slice(at, end);
      at = end + 1;
    }
    const isGiven = value !== undefined && !(value === '' && operator?.startsWith(':'));
    if (operator?.endsWith('+')) result += isGiven ? inText(operand, variables, onUnset) : '';
    else if (isGiven) result += value;
    else if (operator?.endsWith('-')) result += inText(operand, variables, onUnset);
    else onUnset(name);
  }
  return result + text.slice(at);
}

function nextReference(text: string, from: number): RegExpExecArray | null {
  reference.lastIndex = from;
  return reference.exec(text);
}

/** The position at which the brace that is open at `from` is closed, or the end of the text. */
function closingBrace(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    if (text.startsWith('${', at)) depth += 1;
    else if (text[at] === '}' && --depth === 0) return at;
  }
  return text.length;
}
