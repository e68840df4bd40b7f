/** Options of the library's `toString` with which it writes YAML that is read as exactly the same texts. */
export const exactYaml = {
  lineWidth: 0,
  blockQuote: 'literal',
  // Over several lines, the library writes some texts with carriage returns in a way that is read as another
  // text.
  doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY,
} as const;
