import { z } from 'zod';

/** The keys that the map at a path of a document may have, in any of the forms that the map may take. */
export function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const [key, ...rest] = path;
  if (schema instanceof z.ZodObject) {
    if (key === undefined) return Object.keys(schema.shape);
    const inner = Object.hasOwn(schema.shape, key) ? schema.shape[String(key)] : undefined;
    return inner === undefined ? [] : keysAt(inner, rest);
  }
  if (schema instanceof z.ZodUnion)
    return [...new Set(schema.options.flatMap((option) => keysAt(option, path)))];
  if (schema instanceof z.ZodPipe) {
    // A preprocessing comes before the schema that knows the keys, a transformation after it.
    return keysAt(schema.in instanceof z.ZodTransform ? schema.out : schema.in, path);
  }
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable
  )
    return keysAt(schema.unwrap(), path);
  if (key === undefined) return [];
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  return schema instanceof z.ZodRecord ? keysAt(schema.valueType, rest) : [];
}

/** How deep {@link placesOf} looks. Deeper keys are too far away to be meant. */
const levelsSearched = 3;

/** Where a document may have a key, nearest to its root: `suite.prompt`, or `cases[].verify`. */
export function placesOf(schema: z.core.$ZodType, key: string): string[] {
  let level: { place: string; path: PropertyKey[] }[] = [{ place: '', path: [] }];
  for (let depth = 0; depth < levelsSearched; depth++) {
    const inner = level.flatMap(({ place, path }) =>
      keysAt(schema, path).map((each) => ({
        each,
        place: `${place}${place && '.'}${each}`,
        path: [...path, each],
      })),
    );
    const found = inner.filter(({ each }) => each === key);
    if (found.length > 0) return found.map(({ place }) => place);
    // The first item of a list stands for all.
    level = inner.map(({ place, path }) =>
      keysAt(schema, path).length > 0 ? { place, path } : { place: `${place}[]`, path: [...path, 0] },
    );
  }
  return [];
}
