import { isAbsolute, join, resolve } from 'node:path';
import { messageOf } from '../base/offsite-error.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import type { Hiding } from './answers.ts';
import type { CaseEnvironment, EnvironmentSource } from './environment.ts';
import { BadFile, type FileIssue, issueIn, positionInText } from './file-issues.ts';
import type { FetchedSources } from './git/fetch-sources.ts';
import type { FileReader, Reach } from './read-file.ts';
import type { SuiteFile } from './suite-file.ts';
import { checkLineEnds, type Text } from './text-source.ts';
import { expandVariables, type Variables } from './variables.ts';
import type { Path, YamlFile } from './yaml-file.ts';

/** What one suite file is read with. */
export interface SuiteReading {
  yaml: YamlFile<SuiteFile>;
  /** The suite's. */
  folder: string;
  /** For the texts and the environments of the suite. */
  files: FileReader;
  reach: Exclude<Reach, 'anywhere'>;
  /** `images` of the configuration. */
  images: Record<string, string>;
  /** Keys that nothing may hold. */
  keys: KnownKeys | undefined;
  /** What agents must not read: the suite's own file, and the files that grade and solve its cases. */
  own: Pick<Hiding, 'suite' | 'own'>;
  sources?: FetchedSources | undefined;
}

/** A part of a suite file: reads what it names, and collects its problems with their places. */
export class SuitePart {
  readonly reading: SuiteReading;
  readonly path: Path;
  /** The whole suite. */
  readonly whole: SuitePart;
  /** For the files of a case: each may have as many bytes as the texts of the suite together. */
  readonly files: FileReader;
  /** Those of the whole suite. */
  readonly issues: FileIssue[];
  /** The environments that were read already: several cases may share one. */
  readonly environments: Map<EnvironmentSource, CaseEnvironment>;

  constructor(reading: SuiteReading, above?: SuitePart, path: Path = [], files = reading.files) {
    this.reading = reading;
    this.path = path;
    this.whole = above?.whole ?? this;
    this.files = files;
    this.issues = above?.issues ?? [];
    this.environments = above?.environments ?? new Map();
  }

  get source(): SuiteFile {
    return this.reading.yaml.value;
  }

  at(...keys: Path): SuitePart {
    return new SuitePart(this.reading, this, [...this.path, ...keys], this.files);
  }

  readingWith(files: FileReader): SuitePart {
    return new SuitePart(this.reading, this, this.path, files);
  }

  /** The path of a file that the suite names. */
  resolve(...names: string[]): string {
    return resolve(this.reading.folder, ...names);
  }

  report(message: string): void {
    this.issues.push(this.reading.yaml.issue(this.path, message));
  }

  /**
   * Returns what `read` returns. If `read` throws, reports the error and returns undefined.
   *
   * @param name of the file that `read` reads, for the message
   */
  attempt<Result>(read: () => Result, name?: string): Result | undefined {
    try {
      return read();
    } catch (error) {
      if (error instanceof BadFile) this.issues.push(...error.issues);
      else this.report(name === undefined ? messageOf(error) : `${name}: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** A text of the suite, or of the file that it names. Empty, with a problem, if that cannot be read. */
  text(text: Text): string {
    if (typeof text === 'string') return text;
    return this.attempt(() => this.reading.files.text(this.resolve(text.file))) ?? '';
  }

  /** Reads a text and checks that every `{{name}}` in it is a variable of the case. */
  script(text: Text, variables: Variables): string {
    const source = this.text(text);
    this.refuseUnknownNames(source, variables, '', typeof text === 'object' ? text.file : undefined);
    return source;
  }

  /** The same for a script that bash runs. */
  bash(text: Text, variables: Variables): string {
    const source = this.script(text, variables);
    this.attempt(() => checkLineEnds(source), typeof text === 'object' ? text.file : undefined);
    return source;
  }

  refuseUnknownNames(text: string, variables: Variables, where = '', file?: string): void {
    expandVariables(text, variables, (name, offset) => {
      const message = `{{${name}}} is not a variable${where}; write \\{{ for literal braces`;
      if (file === undefined) this.report(message);
      else
        this.issues.push(
          issueIn(
            isAbsolute(file) ? file : join(this.reading.folder, file),
            message,
            positionInText(text, offset),
          ),
        );
    });
  }

  /** For a list whose items have names, each under this key. */
  refuseRepeated(names: readonly string[], key: string): void {
    names.forEach((name, index) => {
      const first = names.indexOf(name);
      if (name !== '' && first < index)
        this.at(index, key).report(`"${name}" is already used by ${this.at(first).place.path}`);
    });
  }

  get place(): Omit<FileIssue, 'message'> {
    const { message: _, ...place } = this.reading.yaml.issue(this.path, '');
    return place;
  }

  /** `suite.yaml:3:5` */
  get placeText(): string {
    const { file, line, column } = this.place;
    return `${file}:${line}:${column}`;
  }
}
