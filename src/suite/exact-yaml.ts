/** How YAML is written so that it reads as the same texts. Options of the library's `toString`. */
export const exactYaml = {
  lineWidth: 0,
  blockQuote: 'literal',
  // In several lines, the library writes some texts with carriage returns so that another text is read.
  doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY,
} as const;
