// Functions that code can call in a Belljar cell. Made from the catalogue of tools; do not edit.

/** The data that the caller passed in. */
declare const context: any;
/** Prints a value and returns it. */
declare function output<T>(value: T): T;
/** Notes a value in the log and returns it. */
declare function debug<T>(value: T, label?: string): T;
/** The whole value behind a handle, where a result was too large to be passed on. */
declare function load(handle: string): Promise<any>;
/** Calls a tool by its full name. */
declare function __callTool__(name: string, args?: object): Promise<any>;

/** Calling tools by name, and finding out what there is. */
declare const tools: {
  /** Calls a tool by its full name, `server__tool`. */
  call(name: string, args?: object): Promise<any>;
  /** The tools that fit best what is to be done. */
  search(intent: string, k?: number): Promise<any[]>;
  /** A tool's arguments and result. */
  describe(name: string): Promise<string>;
  /** All tools there are. */
  list(): Promise<any[]>;
};

/** A tool failed, was not there, or was called with wrong arguments. */
declare class ToolError extends Error {
  readonly code: string;
  readonly toolName: string | null;
  readonly hint: string | null;
}
/** The policy, or a person, did not allow it. */
declare class PermissionError extends Error {
  readonly code: string;
  readonly toolName: string | null;
  readonly hint: string | null;
}
