/**
 * Hand-written checks of the strict double. A shape says what a value must be; every field that it names is
 * required, and no other is allowed.
 */

type Path = (string | number)[];

export interface Issue {
  _tag: 'Missing' | 'Unexpected' | 'Type' | 'Refinement';
  path: Path;
  message: string;
}

export type Shape = (value: unknown, path: Path) => Issue[];

const wrong = (_tag: Issue['_tag'], path: Path, message: string): Issue[] => [{ _tag, path, message }];

export const string: Shape = (value, path) =>
  typeof value === 'string' ? [] : wrong('Type', path, 'must be a string');
export const boolean: Shape = (value, path) =>
  typeof value === 'boolean' ? [] : wrong('Type', path, 'must be a boolean');
export const number: Shape = (value, path) =>
  typeof value === 'number' ? [] : wrong('Type', path, 'must be a number');
export const integer: Shape = (value, path) =>
  Number.isInteger(value) ? [] : wrong('Type', path, 'must be an integer');

export const between =
  (least: number, most: number): Shape =>
  (value, path) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? []
      : wrong('Refinement', path, `must be an integer from ${least} to ${most}`);

export const oneOf =
  (...values: string[]): Shape =>
  (value, path) =>
    values.includes(value as string) ? [] : wrong('Type', path, `must be ${values.join(' or ')}`);

export const listOf =
  (item: Shape, least = 0, most = Number.POSITIVE_INFINITY): Shape =>
  (value, path) => {
    if (!Array.isArray(value)) return wrong('Type', path, 'must be a list');
    if (value.length < least || value.length > most) {
      return wrong('Refinement', path, `must have ${least} to ${most} items`);
    }
    return value.flatMap((one, index) => item(one, [...path, index]));
  };

export const freeForm: Shape = (value, path) =>
  isObject(value) ? [] : wrong('Type', path, 'must be an object');

/**
 * An object with exactly these fields. `may` says which of them may be missing in this object; no field may
 * be null.
 */
export const object =
  (fields: Record<string, Shape>, may: (value: Record<string, unknown>) => string[] = () => []): Shape =>
  (value, path) => {
    if (!isObject(value)) return wrong('Type', path, 'must be an object');
    const optional = may(value);
    const unknown = Object.keys(value).filter((name) => !Object.hasOwn(fields, name));
    return [
      ...unknown.flatMap((name) => wrong('Unexpected', [...path, name], 'is not a field here')),
      ...Object.entries(fields).flatMap(([name, shape]) => {
        if (Object.hasOwn(value, name)) return shape(value[name], [...path, name]);
        return optional.includes(name) ? [] : wrong('Missing', [...path, name], 'is missing');
      }),
    ];
  };

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
