import time
import tkinter as tk


def save():
    time.sleep(1.5)


root = tk.Tk()
button = tk.Button(root, text="Save", command=save)
button.pack()
root.after(300, button.invoke)
root.after(2500, root.destroy)
root.mainloop()
