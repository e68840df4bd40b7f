import { code, page, plain, table, toSection } from './markdown.ts';
import { formsOf, type JsonSchema, placeOf, valueText } from './schema-text.ts';

/** What one map of a file may have. */
interface Section {
  /** Where the map is: `cases[].environment`; empty for the file itself. */
  place: string;
  keys: Map<string, { schema: JsonSchema; isRequired: boolean }>;
}

/** The page of all keys of a file, from its JSON Schema: a table for each map. */
export function keysPage(title: string, about: string, schema: JsonSchema): string {
  const placeOfKeys = new Map<string, string>();
  const parts = tables({ place: '', keys: keysOf([schema]) }, placeOfKeys);
  return page(title, about, ...parts);
}

/**
 * The section's table, and those of the maps below it. A map that occurs in several places is shown at the
 * first, and the others link to it.
 */
function tables({ place, keys }: Section, placeOfKeys: Map<string, string>): string[] {
  const below: Section[] = [];
  const rows = [...keys].map(([key, { schema, isRequired }]) => {
    const path = placeOf(place, key);
    const maps = formsOf(schema).filter(({ inner }) => inner.properties !== undefined);
    let link = '';
    if (maps.length > 0) {
      const inside = keysOf(maps.map(({ inner }) => inner));
      const shape = JSON.stringify([...inside]);
      const known = placeOfKeys.get(shape);
      const [{ suffix }] = maps as [(typeof maps)[number]];
      if (known === undefined) {
        placeOfKeys.set(shape, path + suffix);
        below.push({ place: path + suffix, keys: inside });
      }
      link = `: ${toSection(known ?? path + suffix)}`;
    }
    const value = `${valueText(schema)}${link}${isRequired ? ', required' : ''}`;
    return [code(key), value, plain(schema.description ?? '')];
  });
  return [
    place === '' ? '' : `${place.split('.').length > 2 ? '###' : '##'} ${code(place)}`,
    table(['key', 'value', 'what it is'], rows),
    ...below.flatMap((section) => tables(section, placeOfKeys)),
  ];
}

/** All keys of the forms that a map may take. A key is required if each form requires it. */
function keysOf(forms: readonly JsonSchema[]): Section['keys'] {
  const keys: Section['keys'] = new Map();
  for (const { properties = {} } of forms)
    for (const [key, schema] of Object.entries(properties)) {
      if (keys.has(key)) continue;
      keys.set(key, { schema, isRequired: forms.every(({ required = [] }) => required.includes(key)) });
    }
  return keys;
}
