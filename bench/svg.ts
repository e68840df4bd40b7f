/** Attributes of an element; those without a value are left out. */
type Attributes = Record<string, string | number | undefined>;

/** An SVG element around the elements, or the text, that it holds. */
export function element(name: string, attributes: Attributes, content: readonly string[] = []): string {
  const given = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${typeof value === 'number' ? rounded(value) : escaped(value ?? '')}"`);
  return content.length === 0
    ? `<${name}${given.join('')}/>`
    : `<${name}${given.join('')}>${content.join('')}</${name}>`;
}

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Rounded to a tenth of a pixel; more is invisible. */
export function rounded(value: number): string {
  return String(Math.round(value * 10) / 10);
}
